"""The snapshots of a rank: all of its attempts, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError, NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.storage.store import Store

__all__ = ["newest_of_rank", "snapshots_of_rank"]

_TRIES = 5


def snapshots_of_rank(store: Store, rank: int) -> list[str]:
    """The manifests of a rank: of its newest attempt first, and the newest of each first."""
    listed = (item.path for item in store.list(layout.lines_prefix(rank)))
    found = {path: of for path in listed if (of := layout.snapshot_of(path))}
    return sorted(found, key=found.__getitem__, reverse=True)


def newest_of_rank(store: Store, rank: int, ctx: Context | None = None) -> Manifest | None:
    """The last snapshot of a rank whose manifest is whole; None if there is none at all.

    `ctx` is told if it is not the newest one.
    """
    for _ in range(_TRIES):
        damage: IntegrityError | None = None
        try:
            for path in snapshots_of_rank(store, rank):
                try:
                    manifest = read_manifest(store, path)
                except IntegrityError as error:
                    damage = damage or error
                    continue
                if damage and ctx:
                    ctx.warn(f"Rank {rank}: {damage.message}. Using an earlier snapshot instead")
                return manifest
        except NotFound:
            continue  # swept meanwhile: there is a newer one
        if damage:
            raise damage
        return None
    raise Transient(
        f"The snapshots of rank {rank} kept changing while they were being read", hint="Try again."
    )
