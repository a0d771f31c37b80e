"""Where tasks are, remembered for the length of a command."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.clouds.vm.task_context import Location
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["Known"]

L = TypeVar("L", bound="Location")

_MISSING_FOR = 2.0  # seconds at least; longer where it took longer to look


class Known(Generic[L]):
    """A cloud says where a task will be, `_planned`, and how one is looked for: `_found`; `tasks`
    finds all."""

    def __init__(self) -> None:
        self._known: dict[TaskId, L] = {}
        self._missing: dict[TaskId, tuple[float, NotFound]] = {}
        self._ours: set[str] = set()  # what is certainly this account's, and not a stranger's
        self._lock = threading.Lock()

    def of(self, id: TaskId, task: Task | None) -> L:
        """Where a task is or will be. Nowhere: raises NotFound."""
        with self._lock:  # all resources of a task ask at once
            if id not in self._known:
                self._known[id] = self._planned(id, task) if task else self._looked_for(id)
            return self._known[id]

    def remember(self, found: Mapping[TaskId, L]) -> None:
        """Those that somebody listed."""
        self._known.update(found)

    def forget(self, id: TaskId) -> None:
        """It is gone, or going."""
        self._known.pop(id, None)

    def claim(self, bucket: str) -> None:
        """It was made just now, so it is ours."""
        self._ours.add(bucket)

    def beside(self, place: L) -> dict[TaskId, str]:
        """The folders of all tasks in the bucket of this place."""
        return {
            id: each.folder
            for id, each in self.tasks().items()  # noqa: A001
            if each.contained and each.bucket == place.bucket
        }

    def check(self, task: Task) -> None:
        """Refuse a container that is not there, or not ours to use."""
        raise NotImplementedError

    def tasks(self) -> Mapping[TaskId, L]:
        """All that there are."""
        raise NotImplementedError

    def _looked_for(self, id: TaskId) -> L:
        """To look everywhere takes a while: what was just not found is not looked for again."""
        began = time.monotonic()
        until, error = self._missing.get(id, (0.0, None))
        if error and began < until:
            raise error
        try:
            return self._found(id)
        except NotFound as missing:
            now = time.monotonic()
            self._missing[id] = (now + max(_MISSING_FOR, now - began), missing)
            raise

    def _planned(self, id: TaskId, task: Task) -> L:
        raise NotImplementedError

    def _found(self, id: TaskId) -> L:
        """Nowhere: raises NotFound."""
        raise NotImplementedError
