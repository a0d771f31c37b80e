"""Taking and restoring snapshots in one line each."""

from __future__ import annotations

from pathlib import Path

from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.manifest import Manifest, decode
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import SnapshotWriter
from sojourn.storage.store import Store

__all__ = [
    "line_of",
    "loose_objects",
    "missing_objects",
    "refuse",
    "restore",
    "snapshots",
    "take",
    "writer",
]

NO_FILTERS = Filters()


def refuse(path: str, reason: str, *, lost: bool = False) -> None:
    """For takes in which nothing is left out."""
    raise AssertionError(f"{path} was skipped: {reason}")


def writer(store: Store, attempt: int = 1, rank: int = 0) -> SnapshotWriter:
    """A writer as a machine has it."""
    return SnapshotWriter(store, line_of(attempt, rank), base=layout.WORKDIR, workers=2)


def line_of(attempt: int = 1, rank: int = 0) -> str:
    """The line of an attempt."""
    return layout.data_prefix(rank, attempt)


def take(by: SnapshotWriter, root: Path) -> bool:
    """A snapshot of all of a folder."""
    return by.take(Context(), root, NO_FILTERS, skipped=refuse)


def restore(store: Store, manifest: Manifest, into: Path) -> Manifest:
    """Bring a snapshot back; gives what a writer on this folder begins with."""
    entries = Restorer(store, into, workers=2).restore(
        Context(), manifest.entries.values(), manifest.objects
    )
    return Manifest(entries, dict(manifest.objects))


def snapshots(store: Store, line: str) -> dict[int, Manifest]:
    """All that there are of a line, by number."""
    found = store.list(layout.snapshots_prefix(line))
    return {
        of[1]: decode(store.get(item.path))
        for item in found
        if (of := layout.snapshot_of(item.path))
    }


def missing_objects(store: Store, manifest: Manifest) -> set[str]:
    """What a snapshot needs and the store does not have."""
    return {path for path in manifest.objects if store.head(path) is None}


def loose_objects(store: Store, line: str) -> set[str]:
    """Objects of a line that none of its snapshots uses."""
    used = {path for manifest in snapshots(store, line).values() for path in manifest.objects}
    return {item.path for item in store.list(layout.objects_prefix(line))} - used
