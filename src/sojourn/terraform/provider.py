"""What the provider offers, by the names that stand in a main.tf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api
from sojourn.core.errors import SojournError
from sojourn.terraform import pending
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.schema import Block, Schema
from sojourn.terraform.task import TaskResource
from sojourn.terraform.taskdata import TaskData
from sojourn.terraform.translate import context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sojourn.terraform.plugin.resource import Call, DataSource, Resource

__all__ = ["IterativeProvider"]


class IterativeProvider:
    """The successor of the provider of this name."""

    schema = Schema(Block(description="Credentials come from where each cloud's own tools look."))
    resources: Mapping[str, Resource] = {"iterative_task": TaskResource()}
    data_sources: Mapping[str, DataSource] = {"iterative_task": TaskData()}

    def configure(self, call: Call) -> Iterable[Diagnostic]:
        """Tell of tasks that a killed provider left half made."""
        for task, note, made in pending.broken_off():
            try:
                there = api.get(task, cloud=note.cloud, ctx=context(call)).exists()
            except (SojournError, OSError):
                there = True  # as far as anybody knows
            if there:
                yield _half_made(task, note, made)
            else:
                pending.forget(task)


def _half_made(id: str, note: pending.Note, made: bool) -> Diagnostic:
    unless = "If it is in the state, all is well. If not, " if made else ""
    return Diagnostic(
        f"An earlier apply was killed while it created {id}",
        f"{unless}`terraform apply` of the same in {note.folder} goes on with it; "
        f"`sojourn delete {id}` removes it.",
        warning=True,
    )
