"""The results of all ranks at the paths that they come home to, and what stays in the store.

Whoever writes them asks here, and so does whoever deletes a task: only what comes may go.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.storage.given import with_given
from sojourn.storage.guard import Guard
from sojourn.storage.join import Base, Joined
from sojourn.storage.landing import landing
from sojourn.storage.output import folders_above, is_there, leads_to, moved_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.filters import Filters
    from sojourn.storage.manifest import Manifest

__all__ = ["Wanted", "join_results"]


@dataclass(frozen=True)
class Wanted:
    """What comes home, and where to; `memory` is where pulls remember what they wrote.

    `into` is None if nobody knows the folder yet. `given`: the small files that the task brings
    itself.
    """

    output: str
    into: Path | None
    filters: Filters
    memory: Path | None
    given: Mapping[str, str]

    def base(self, pushed: Manifest) -> Base:
        """What is no result."""
        return with_given(pushed.entries, self.given)


def join_results(
    ctx: Context, pushed: Manifest | None, manifests: Mapping[int, Manifest], wanted: Wanted
) -> Joined:
    """The outputs of all ranks in one tree, without what a pull leaves in the store."""
    base: Base = wanted.base(pushed) if pushed else {}
    roots = {rank: leads_to(wanted.output, m.entries) for rank, m in manifests.items()}
    there = {
        rank: root
        for rank, root in roots.items()
        if root is not None and is_there(root, manifests[rank].entries)
    }
    joined = Joined(base)
    if not there:
        return joined
    home = posixpath.normpath(wanted.output)
    if wanted.into:
        home = landing(wanted.into, wanted.output, base, there.values())
    for rank, root in sorted(there.items()):
        manifest = manifests[rank]
        entries = moved_home(root, home, manifest.entries, wanted.filters)
        joined.add(ctx, rank, entries, manifest.objects)
    joined.withhold(Guard(home, joined.entries, wanted.into))
    if joined.entries:
        above = folders_above(home, [manifests[rank].entries for rank in there])
        joined.entries = {folder.path: folder for folder in above} | joined.entries
    return joined
