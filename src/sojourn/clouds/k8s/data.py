"""The data of a task: in the Secret, on the claim or in a bucket, and what its pods tell."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.listing import final_reports
from sojourn.core.errors import NotFound
from sojourn.core.status import RankRecord
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

    def records(self, ctx: Context, parallelism: int) -> list[RankRecord]:
        """If all ranks have ended, their pods tell how, and nobody has to look at the store."""
        if not self._objects.door.is_open:
            reports = final_reports(self._objects.pods(role=names.MACHINES))
            if set(reports) == set(range(parallelism)):
                return [
                    RankRecord(rank, report.attempt, machine, report)
                    for rank, (machine, report) in sorted(reports.items())
                ]
        return super().records(ctx, parallelism)

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
