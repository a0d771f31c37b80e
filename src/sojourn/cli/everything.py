"""`--all`: every task there is, after asking."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn.cli.session import opened
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.core.errors import SojournError
    from sojourn.core.status import State

__all__ = ["all_options", "all_tasks"]

_LOOK_EVERY = 0.2  # seconds
_Function = TypeVar("_Function", bound=Callable[..., Any])


def all_options(function: _Function) -> _Function:
    """Adds --all and --yes."""
    yes = click.option(
        "-y", "--yes", is_flag=True, help="Do not ask for confirmation; required in scripts."
    )
    every = click.option(
        "--all", "everything", is_flag=True, help="Apply to all tasks, after confirmation."
    )
    return every(yes(function))


def all_tasks(
    ids: Sequence[str],
    *,
    question: str,
    concerned: Callable[[State], bool],
    yes: bool,
    as_json: bool,
) -> tuple[list[str], bool]:
    """The ids of all tasks that it concerns, and whether all clouds could be asked.

    Asks on a terminal; where there is none, `yes` is required. Whoever declines ends the command.
    `question`: with {tasks} for them, and {Their}.
    """
    from sojourn import api
    from sojourn.api.rows import task
    from sojourn.cli import screen
    from sojourn.cli.rows import task_columns, task_table

    missed: list[SojournError] = []
    with opened(as_json=as_json) as session:
        if ids:
            raise InvalidInput("all", "cannot be combined with IDS")
        found = api.overview(ctx=session.ctx, missed=missed)
        found = [(handle, status) for handle, status in found if concerned(status.state)]
        if not found:
            session.ctx.note("No tasks found")
        elif not yes:
            if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise InvalidInput("all", "requires --yes without a terminal")
            lines = [task_columns(task(*each)) for each in found]
            for line in task_table(lines):
                screen.say(*([line] if isinstance(line, str) else line))
            if not _confirmed(session.ctx, question.format(**_words(len(found)))):
                session.ctx.note("Cancelled")
                raise click.exceptions.Exit(1)
    return [handle.id for handle, _ in found], not missed


def _confirmed(ctx: Context, question: str) -> bool:
    """Whether the answer is yes. Looks for Ctrl-C while it waits, which `input` may miss."""
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    while not select.select([sys.stdin], [], [], _LOOK_EVERY)[0]:
        ctx.check()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _words(count: int) -> dict[str, str]:
    """What a question may say of so many tasks."""
    if count == 1:
        return {"tasks": "this task", "Their": "Its"}
    return {"tasks": f"these {count} tasks", "Their": "Their"}
