"""What the ranks of a task changed in their workdirs, compared with what was pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError
from sojourn.core.filters import Filters
from sojourn.core.interfaces import ChangedFile, Place
from sojourn.storage import layout
from sojourn.storage.given import with_given
from sojourn.storage.guard import Guard
from sojourn.storage.join import untouched
from sojourn.storage.manifest import FOLDER
from sojourn.storage.output import leads_to
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.snapshot import newest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.storage.manifest import Entry
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


def changed_files(
    store: Store,
    ranks: range,
    given: Mapping[str, str] | None = None,
    output: str = "",
    filters: Filters | None = None,
) -> list[ChangedFile]:
    """Files and symlinks that are new, or have other contents than before; caches aside.

    `given`: the small files that the task brings itself. `output`: what comes home, which tells
    the place of each file; what `filters` exclude from it is not counted. A file in it counts
    though it was written anew with the same bytes, for then the script has used the output.
    """
    base = with_given(_pushed(store), given or {})
    changed: dict[str, ChangedFile] = {}
    for rank in ranks:
        manifest = newest_of_rank(store, rank)
        if manifest is None:
            continue
        places = _Places(output, filters or Filters(), manifest.entries)
        for entry in manifest.entries.values():
            if entry.kind == FOLDER or _is_cache(entry.path):
                continue
            place = places.of(entry.path)
            if place is None or not _is_changed(entry, base, place):
                continue
            other = changed.get(entry.path)
            size = max(entry.size, other.size if other else 0)
            changed[entry.path] = ChangedFile(entry.path, size, place)
    return [changed[path] for path in sorted(changed)]


class _Places:
    """Where the files of a snapshot are, seen from what comes home."""

    def __init__(self, output: str, filters: Filters, entries: Mapping[str, Entry]) -> None:
        self._root = leads_to(output, entries) if output else None
        self._filters = filters
        self._guard = Guard(self._root, entries) if self._root is not None else None

    def of(self, path: str) -> Place | None:
        """None: it is excluded, so nobody waits for it."""
        if self._root is None or self._guard is None:
            return Place.OUTSIDE
        if self._root != "." and not f"{path}/".startswith(f"{self._root}/"):
            return Place.OUTSIDE
        if self._filters.covers(path, folder=False):
            return None
        return Place.WITHHELD if self._guard.part(path) else Place.HOME


def _is_changed(entry: Entry, base: Mapping[str, Entry], place: Place) -> bool:
    if place is Place.HOME:
        return not untouched(entry, base)
    pushed = base.get(entry.path)
    return pushed is None or not entry.same_content(pushed)


def _pushed(store: Store) -> Mapping[str, Entry]:
    """What was pushed; if it cannot be read any more, all that ranks have counts as new."""
    try:
        found = newest(store, layout.WORKDIR)
    except IntegrityError:
        return {}
    return found[1].entries if found else {}


def _is_cache(path: str) -> bool:
    return not _CACHES.isdisjoint(path.split("/")) or path.endswith(_SUFFIXES)
