"""What the ranks of a task changed in their workdirs, compared with what was pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError
from sojourn.core.interfaces import ChangedFile
from sojourn.storage import layout
from sojourn.storage.given import with_given
from sojourn.storage.manifest import FOLDER
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
    store: Store, ranks: range, given: Mapping[str, str] | None = None
) -> list[ChangedFile]:
    """Files and symlinks that are new, or have other contents than before; caches aside.

    `given`: the small files that the task brings itself.
    """
    base = with_given(_pushed(store), given or {})
    changed: dict[str, int] = {}
    for rank in ranks:
        manifest = newest_of_rank(store, rank)
        for entry in manifest.entries.values() if manifest else ():
            pushed = base.get(entry.path)
            if entry.kind == FOLDER or _is_cache(entry.path):
                continue
            if pushed is None or not entry.same_content(pushed):
                changed[entry.path] = max(entry.size, changed.get(entry.path, 0))
    return [ChangedFile(path, size) for path, size in sorted(changed.items())]


def _pushed(store: Store) -> Mapping[str, Entry]:
    """What was pushed; if it cannot be read any more, all that ranks have counts as new."""
    try:
        found = newest(store, layout.WORKDIR)
    except IntegrityError:
        return {}
    return found[1].entries if found else {}


def _is_cache(path: str) -> bool:
    return not _CACHES.isdisjoint(path.split("/")) or path.endswith(_SUFFIXES)
