"""Bringing results home: the outputs of all ranks, joined, into a folder that is in use.

None of it is lost, and neither is anything that is there: see `results` and `room`. Nothing is
written but at the output, whatever a machine stored: see `output`.
"""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError, NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.join import untouched
from sojourn.storage.landing import alone, bring_to_disk
from sojourn.storage.manifest import FOLDER, Manifest
from sojourn.storage.output import is_there
from sojourn.storage.pulled import Pulled
from sojourn.storage.ranks import newest_of_rank, snapshots_of_rank
from sojourn.storage.restore import Restorer
from sojourn.storage.results import Wanted, join_results
from sojourn.storage.room import Room
from sojourn.storage.snapshot import newest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.filters import Filters
    from sojourn.storage.manifest import Entry
    from sojourn.storage.store import Store

__all__ = ["holds", "pull"]

_TRIES = 5
_STEP = "Downloading results"
_NAMED = 3  # parts that a warning names


def pull(
    ctx: Context,
    store: Store,
    ranks: range,
    output: str,
    into: Path,
    filters: Filters,
    *,
    memory: Path | None = None,
    given: Mapping[str, str] | None = None,
) -> list[str]:
    """Bring `output` of all ranks into `into`; returns the paths that were written.

    `memory`: a file in which pulls of this task remember what they wrote. Without it, they keep
    copies of all that they replace. `given`: the small files that the task brings itself.
    """
    wanted = Wanted(output, into, filters, memory, given or {})
    pushed = _pushed(store, ctx)
    newest_ones: list[list[str]] = []  # before each further try
    for attempt in range(_TRIES):
        try:
            if attempt:
                newest_ones.append([p for r in ranks for p in snapshots_of_rank(store, r)[:1]])
            return _pull(ctx, store, pushed, ranks, wanted, into)
        except NotFound as error:
            # A machine swept a snapshot while we read it; it has written a newer one.
            missing = error.message
            ctx.sleep(0.1 * 2**attempt)
    if newest_ones and newest_ones[0] == newest_ones[-1]:
        # No fallback to a snapshot before: whoever deletes would lose what is whole of this one.
        raise IntegrityError(
            f"{missing}, but the results need it",
            hint="Use --output to download other parts of the workdir.",
        )
    raise Transient(
        "The results kept changing while they were being read",
        hint="Try again, or wait until the script has ended.",
    )


def holds(store: Store, ranks: range, output: str) -> bool:
    """Whether any rank has something at this path."""
    own = [newest_of_rank(store, rank) for rank in ranks]
    if None in own:
        own.append(_pushed(store))
    return any(manifest is not None and is_there(output, manifest.entries) for manifest in own)


def _pushed(store: Store, ctx: Context | None = None) -> Manifest | None:
    """What was pushed, which tells what is a result; None if it cannot be read any more."""
    try:
        found = newest(store, layout.WORKDIR)
    except (IntegrityError, NotFound) as error:
        if ctx:
            ctx.warn(
                f"{error.message}. Cannot tell results from uploaded files: "
                "downloading everything, and keeping local files that differ as NAME.local"
            )
        return None
    return found[1] if found else Manifest()


def _pull(
    ctx: Context, store: Store, pushed: Manifest | None, ranks: range, wanted: Wanted, into: Path
) -> list[str]:
    # A rank that has stored nothing yet, or changed nothing, has what was pushed.
    found = {rank: newest_of_rank(store, rank, ctx) or pushed for rank in ranks}
    manifests = {rank: manifest for rank, manifest in found.items() if manifest}
    joined = join_results(ctx, pushed, manifests, wanted)
    if joined.withheld:
        ctx.warn(_told_of_withheld(joined.withheld))
    if not joined.entries:
        return []
    base = wanted.base(pushed) if pushed else None
    above = {folder.parent for folder in (into, *into.parents) if not folder.exists()}
    into.mkdir(parents=True, exist_ok=True)
    with alone(ctx, into):
        creators = [item.path for item in store.list(layout.CREATORS)] if wanted.memory else []
        pulled = Pulled(wanted.memory, into, creators)
        room = Room(ctx, into, joined.entries, base, pulled, posixpath.normpath(wanted.output))
        try:
            todo = room.make()
            restorer = Restorer(store, into, give_name=room.give_name)
            restorer.restore(ctx, todo, joined.objects, step=_STEP)
        finally:
            pulled.save()
            room.tell_rest()
        # What was here already as well: who wrote it may have been killed before this.
        results = [e for e in joined.entries.values() if not untouched(e, joined.base)]
        bring_to_disk(into, [*results, *todo], above)
    return [entry.path for entry in todo if entry.kind != FOLDER]


def _told_of_withheld(withheld: Mapping[str, list[Entry]]) -> str:
    count = sum(map(len, withheld.values()))
    files = "1 file" if count == 1 else f"{count:,} files"
    parts = sorted(withheld)
    more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return (
        f"Not downloading {files} that programs on this computer could run by themselves: "
        f"{', '.join(parts[:_NAMED])}{more}. "
        f"Run `sojourn pull ID --output {shlex.quote(parts[0])}` to download by name."
    )
