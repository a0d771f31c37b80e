"""Machines that stay: tasks that have no end of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import engine
from sojourn.api import creating, finding
from sojourn.api.handle import Handle
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import Conflict, InvalidInput, Problem
from sojourn.core.task import Task

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.taskfiles.changes import Fields

__all__ = ["IDLE_TIMEOUT", "LIFETIME", "Machine", "machine_task"]

LIFETIME = 24 * 3600  # seconds; who forgets a machine pays for so much of it at most
IDLE_TIMEOUT = 3600
_NO_SCRIPT = "#!/bin/sh\n:\n"


class Machine(Handle):
    """A machine that stays until it is deleted, was idle for too long, or its time is over.

    Every verb of a task works on it. When it is lost, as spot machines are, another one takes its
    place: with the same workdir, and after the same startup script. As a context manager, it is
    deleted at the end.
    """

    @classmethod
    def create(
        cls,
        startup_script: str = "",
        *,
        gitignore: bool = False,
        on_event: OnEvent | None = None,
        ctx: Context | None = None,
        **fields: Unpack[Fields],
    ) -> Self:
        """Make a machine, and wait until it can be used.

        `startup_script` runs on it first; it is not waited for. `fields`: those of a task; its
        `timeout` is the time that the machine has, and its `idle_timeout` ends it if nobody uses
        it. 0 is no limit for either.
        """
        task = machine_task(startup_script, fields)
        return cls.make(task, gitignore=gitignore, on_event=on_event, ctx=ctx)

    @classmethod
    def make(
        cls,
        task: Task,
        *,
        id: TaskId | None = None,
        gitignore: bool = False,
        on_event: OnEvent | None = None,
        ctx: Context | None = None,
    ) -> Self:
        """The same, from the task that it is. `id`: of an earlier creation, to go on with it."""
        ctx = ctx or context_for(on_event)
        return creating.make(cls, ctx, task, cls._until_it_runs, id=id, gitignore=gitignore)

    def _until_it_runs(self) -> None:
        engine.answering.until_it_runs(*self._at)

    @classmethod
    def get(
        cls,
        id: str,
        *,
        cloud: str = "",
        on_event: OnEvent | None = None,
        ctx: Context | None = None,
    ) -> Self:
        """The machine of this id, which may be shortened while it is unique."""
        found = finding.get(id, cloud=cloud, on_event=on_event, ctx=ctx)
        if not found.task().stay:
            raise Conflict(
                f"{found.id} is a task, not a machine",
                hint=f"Run `sojourn status {found.id}` for details.",
            )
        return cls.of(found)

    @classmethod
    def all(
        cls, *, on_event: OnEvent | None = None, ctx: Context | None = None
    ) -> list[tuple[Machine, Status]]:
        """All machines with their states, of all clouds that can be asked."""
        found = finding.described(ctx or context_for(on_event))
        return [(cls.of(handle), status) for handle, status, task in found if task.stay]

    @property
    def address(self) -> str:
        """Where it is now; empty if it has no address."""
        return next((each.address for each in self.machines() if each.address), "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()


def machine_task(startup_script: str, fields: Fields) -> Task:
    """The task that a machine is; raises InvalidInput, which names its fields as users do."""
    from sojourn.taskfiles.changes import changed

    plain = Task(_NO_SCRIPT, stay=True, timeout=LIFETIME, idle_timeout=IDLE_TIMEOUT)
    given: Fields = {**fields}
    if startup_script:
        given["script"] = startup_script
    if given.get("stay") is False:
        raise InvalidInput("stay", "must not be false: a machine stays")
    if given.get("parallelism", 1) != 1:
        raise InvalidInput("parallelism", "must be 1: create a machine for each, or run a task")
    try:
        return changed(plain, given)
    except InvalidInput as error:
        problems = [_in_users_words(problem) for problem in error.problems]
        raise InvalidInput.of(problems) from error


def _in_users_words(problem: Problem) -> Problem:
    path = "startup_script" if problem.path == "script" else problem.path
    return Problem(path, problem.message)
