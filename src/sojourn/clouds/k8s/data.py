"""The data of a task: in the Secret, on the claim or in a bucket, and what its pods tell."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from sojourn.clouds.k8s.objects import TaskObjects
    from sojourn.core.context import Context
    from sojourn.storage.store import Store

__all__ = ["KubernetesData"]


class KubernetesData(StoreData):
    """Whoever waits for a pod that has the store is told why it does not come."""

    def __init__(self, objects: TaskObjects) -> None:
        super().__init__(objects.store)
        self._objects = objects

    def idle(self, ctx: Context) -> float:
        """What laptops say of a task is in the Secret; a creation may have come no further."""
        try:
            written = self._objects.secret.last_written()
        except NotFound:
            return super().idle(ctx)
        since = (datetime.now(timezone.utc) - written).total_seconds()
        return min(since, super().idle(ctx))

    def _at(self, ctx: Context) -> Store:
        self._objects.door.ctx = ctx
        return super()._at(ctx)
