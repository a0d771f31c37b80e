"""What the provider offers, by the names that stand in a main.tf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api
from sojourn.core.errors import SojournError
from sojourn.terraform import pending
from sojourn.terraform.machine import MachineOrRunner
from sojourn.terraform.operator import OperatorResource
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.schema import Block, Schema
from sojourn.terraform.runner import RunnerResource
from sojourn.terraform.task import TaskResource
from sojourn.terraform.taskdata import TaskData
from sojourn.terraform.translate import context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sojourn.terraform.plugin.resource import Call, DataSource, Resource

__all__ = ["IterativeProvider"]


class IterativeProvider:
    """The successor of the provider of this name."""

    schema = Schema(
        Block(description="Reads credentials from the same places as each cloud's own tools.")
    )
    resources: Mapping[str, Resource] = {
        "iterative_task": TaskResource(),
        "iterative_machine": MachineOrRunner(),
        "iterative_cml_runner": RunnerResource(),
        "iterative_mpi_operator": OperatorResource(),
    }
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
    unless = "Ignore this if the task is in the state. Otherwise, run" if made else "Run"
    return Diagnostic(
        f"An earlier apply was killed while creating {id}",
        f"{unless} `terraform apply` with the same configuration in {note.folder} to finish "
        f"creating it, or `sojourn delete {id}` to delete it.",
        warning=True,
    )
