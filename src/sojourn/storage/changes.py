"""What the ranks of a task changed in their workdirs, compared with what was pushed."""

from __future__ import annotations

import os
import posixpath
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.above import FromAbove
from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError
from sojourn.core.interfaces import ChangedFile, Place
from sojourn.storage import layout
from sojourn.storage.join import untouched
from sojourn.storage.manifest import FOLDER, Manifest
from sojourn.storage.output import leads_to
from sojourn.storage.pulled import Pulled
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.results import join_results
from sojourn.storage.room import stays_own
from sojourn.storage.snapshot import newest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.storage.join import Base, Joined
    from sojourn.storage.manifest import Entry
    from sojourn.storage.results import Wanted
    from sojourn.storage.store import Store

__all__ = ["changed_files"]

# What programs leave without being asked; nobody would miss it.
_CACHES = frozenset(
    {
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints"),
        *(".cache", ".DS_Store", "lost+found", "nohup.out", ".bash_history", ".python_history"),
    }
)
_SUFFIXES = (".pyc", ".pyo", ".swp", "~")


def changed_files(store: Store, ranks: range, wanted: Wanted) -> list[ChangedFile]:
    """Files and symlinks that are new, or have other contents than before; caches aside.

    What `wanted` says comes home tells the place of each file. What its filters exclude there is
    not counted, for nobody waits for it. A file that comes home counts though it was written anew
    with the same bytes, for then the script has used the output.
    """
    pushed = _pushed(store)
    base = wanted.base(pushed)
    manifests = {rank: newest_of_rank(store, rank) for rank in ranks}
    changed: dict[str, ChangedFile] = {}
    for manifest in manifests.values():
        for entry in _outside(wanted.output, manifest):
            if not _is_as_pushed(entry, base):
                other = changed.get(entry.path)
                size = max(entry.size, other.size if other else 0)
                changed[entry.path] = ChangedFile(entry.path, size, Place.OUTSIDE)
    if wanted.output:
        # A rank that has stored nothing yet, or changed nothing, has what was pushed.
        whole = {rank: manifest or pushed for rank, manifest in manifests.items()}
        joined = join_results(Context(), pushed, whole, wanted)
        changed |= {file.path: file for file in _inside(store, joined, wanted)}
    return [changed[path] for path in sorted(changed)]


def _outside(output: str, manifest: Manifest | None) -> Iterator[Entry]:
    """What is not in the output, wherever that leads."""
    entries = manifest.entries if manifest else {}
    root = leads_to(output, entries) if output else None
    if root == ".":
        return
    for entry in entries.values():
        inside = root is not None and f"{entry.path}/".startswith(f"{root}/")
        if not inside and _counts(entry):
            yield entry


def _inside(store: Store, joined: Joined, wanted: Wanted) -> Iterator[ChangedFile]:
    """What is in the output, by the paths at home: what comes, and what does not."""
    creators = [item.path for item in store.list(layout.CREATORS)] if wanted.memory else []
    pulled = Pulled(wanted.memory, wanted.into or Path(), creators)
    own = _own_folders(joined.base, wanted, pulled)
    for entry in joined.entries.values():
        if _counts(entry) and not untouched(entry, joined.base):
            place = Place.OWN if own.above(entry.path) else Place.HOME
            yield ChangedFile(entry.path, entry.size, place)
    for entry in chain.from_iterable(joined.withheld.values()):
        if _counts(entry) and not _is_as_pushed(entry, joined.base):
            by_name = pulled.was_here(entry.path)
            yield ChangedFile(entry.path, entry.size, Place.HOME if by_name else Place.WITHHELD)


def _own_folders(base: Base, wanted: Wanted, pulled: Pulled) -> FromAbove[bool]:
    """Tells whether a folder is here and stays as it is, or is in one that does."""
    named = posixpath.normpath(wanted.output)

    def is_own(path: str) -> bool:
        into = wanted.into
        return (
            into is not None
            and stays_own(path, named, base, pulled)
            and os.path.lexists(into / path)
        )

    return FromAbove(is_own, False)


def _counts(entry: Entry) -> bool:
    return entry.kind != FOLDER and not _is_cache(entry.path)


def _is_as_pushed(entry: Entry, base: Base) -> bool:
    pushed = base.get(entry.path)
    return pushed is not None and entry.same_content(pushed)


def _pushed(store: Store) -> Manifest:
    """What was pushed; if it cannot be read any more, all that ranks have counts as new."""
    try:
        found = newest(store, layout.WORKDIR)
    except IntegrityError:
        return Manifest()
    return found[1] if found else Manifest()


def _is_cache(path: str) -> bool:
    return not _CACHES.isdisjoint(path.split("/")) or path.endswith(_SUFFIXES)
