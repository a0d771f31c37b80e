"""What the resources of a task have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["TaskResource"]


class _Deployment(Protocol):
    """A task and where it is, as each cloud has it."""

    @property
    def name(self) -> str:
        """What all that is made for it is called."""


D = TypeVar("D", bound=_Deployment)


class TaskResource(Generic[D]):
    """`_find` looks for it, and what is nowhere is absent."""

    stage = 1
    kind = ""

    def __init__(self, deployment: D) -> None:
        self._deployment = deployment

    @property
    def _name(self) -> str:
        return self._deployment.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self._name}"

    def read(self, ctx: Context) -> bool:
        try:
            return self._find()
        except NotFound:
            return False

    def _find(self) -> bool:
        raise NotImplementedError
