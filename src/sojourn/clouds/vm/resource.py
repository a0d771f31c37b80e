"""What the resources of a task have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from sojourn.clouds.vm.task_context import TaskContext
    from sojourn.core.context import Context

__all__ = ["TaskResource"]


C = TypeVar("C", bound="TaskContext[Any, Any, Any]")


class TaskResource(Generic[C]):
    """What is nowhere is absent."""

    stage = 1
    kind = ""

    def __init__(self, context: C) -> None:
        self._context = context

    @property
    def _name(self) -> str:
        return self._context.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self._name}"

    def read(self, ctx: Context) -> bool:
        try:
            return self.find()
        except NotFound:
            return False

    def find(self) -> bool:
        """Whether it is there. Nowhere: may raise NotFound."""
        raise NotImplementedError
