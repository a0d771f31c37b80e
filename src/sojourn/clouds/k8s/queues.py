"""Queues of Volcano, a scheduler for batches: pods wait there, and a gang starts whole or not.

Kueue has queues as well, but it admits Jobs, and starts and stops them itself, as we do: there,
`stop` would be undone, and the Jobs of a gang would be admitted one by one. So it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.resources import Made
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.kube.api import Api

__all__ = ["QueueGroup", "check_queues"]

_FIELD = "options.queue"


def check_queues(api: Api) -> None:
    """Refuse a cluster that has none."""
    if api.serves(QueueGroup.kind):
        return
    if api.serves("LocalQueue"):
        raise InvalidInput(
            _FIELD,
            "only supported for queues of Volcano: Kueue starts and stops Jobs itself, which would "
            "undo `stop`, and it would admit the ranks of a gang one by one; leave it out",
        )
    raise InvalidInput(_FIELD, "needs Volcano, which the cluster does not have; leave it out")


class QueueGroup(Made):
    """All pods of a gang: none starts before there is room for all of them."""

    kind = "PodGroup"

    @property
    def _name(self) -> str:
        return names.group(self._objects.id)

    def create(self, ctx: Context) -> None:
        objects = self._objects
        spec: dict[str, Any] = {
            "minMember": objects.task.parallelism,
            "queue": objects.task.options["queue"],
        }
        self._create({"metadata": self._metadata(), "spec": spec})
