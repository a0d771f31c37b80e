"""What `sojourn doctor` can tell of this computer's folders; it leaves nothing in them."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

from sojourn.clouds.local.launcher import HOW_TO_INSTALL, find_launcher
from sojourn.core.errors import SojournError
from sojourn.core.finding import Finding
from sojourn.storage.store import StoreAddress, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sojourn.clouds.local.locations import Roots

__all__ = ["look"]


def look(roots: Roots) -> Iterator[Finding]:
    """Whether there is room, and whether the store can do what it has to."""
    yield _folder("local store", roots.tasks)
    yield _folder("local machines", roots.machines)
    yield _store(roots.tasks)
    found = find_launcher()
    missing = f"not found, required by MPI tasks on this computer; {HOW_TO_INSTALL}"
    yield Finding("ok" if found else "note", "local mpirun", found or missing)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _folder(subject: str, folder: Path) -> Finding:
    existing = _existing(folder)
    if not existing.is_dir():
        return Finding("problem", subject, f"{existing} is not a folder; remove it")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding("problem", subject, f"{existing} is not writable: {error.strerror}")
    free = shutil.disk_usage(existing).free / 2**30
    return Finding("ok", subject, f"{folder}, {free:.1f} GiB free")


def _store(tasks: Path) -> Finding:
    """Leases need a store that creates an object for exactly one of its callers."""
    try:
        with tempfile.TemporaryDirectory(dir=_existing(tasks)) as folder:
            store = open_store(StoreAddress(f"file://{folder}"))
            works = store.put_new("probe", b"1") and not store.put_new("probe", b"2")
    except (SojournError, OSError) as error:
        return Finding("problem", "store", str(error))
    detail = "conditional writes work" if works else "conditional writes are not supported here"
    return Finding("ok" if works else "problem", "store", detail)
