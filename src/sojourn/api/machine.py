"""Machines that stay: tasks that have no end of their own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sojourn import clouds, engine
from sojourn.api import creating, finding
from sojourn.api.handle import Handle
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import Conflict, InvalidInput, Problem
from sojourn.core.parallel import together
from sojourn.core.task import Task

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.taskfiles.changes import Fields

__all__ = ["IDLE_TIMEOUT", "LIFETIME", "NO_SCRIPT", "Machine", "machine_task"]

LIFETIME = 24 * 3600  # seconds; who forgets a machine pays for so much of it at most
IDLE_TIMEOUT = 3600
NO_SCRIPT = "#!/bin/sh\n:\n"
_AT_ONCE = 16


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
        cloud = clouds.load(task.cloud)
        launch = creating.launch_of(ctx, task, id, gitignore)
        answers = partial(engine.answering.until_it_runs, ctx, cloud, launch.id)
        engine.creation.create(ctx, cloud, launch, answers)
        return cls(cloud, launch.id, ctx, launch.task)

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
        return cls(found._cloud, found._id, found._ctx)

    @classmethod
    def all(
        cls, *, on_event: OnEvent | None = None, ctx: Context | None = None
    ) -> list[tuple[Machine, Status]]:
        """All machines with their states, of all clouds that can be asked."""
        ctx = ctx or context_for(on_event)
        rows = finding.overview(ctx=ctx)
        stays: list[bool] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            stays += together([partial(_stays, ctx, handle) for handle, _ in some])
        return [
            (cls(handle._cloud, handle._id, handle._ctx), status)
            for (handle, status), stay in zip(rows, stays, strict=True)
            if stay
        ]

    @property
    def address(self) -> str:
        """Where it is now; empty if it has no address."""
        return next((each.address for each in self.machines() if each.address), "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.delete()


def _stays(ctx: Context, handle: Handle) -> bool:
    task = finding.task_of(ctx, handle)
    return task is not None and task.stay


def machine_task(startup_script: str, fields: Fields) -> Task:
    """The task that a machine is; raises InvalidInput, which names its fields as users do."""
    from sojourn.taskfiles.changes import changed

    plain = Task(NO_SCRIPT, stay=True, timeout=LIFETIME, idle_timeout=IDLE_TIMEOUT)
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
