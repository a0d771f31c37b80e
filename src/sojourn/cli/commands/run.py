"""`sojourn run`, and `sojourn create` for users of the old tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli.commandline import WORDS, Typed, WithCommand
from sojourn.cli.following import run_through
from sojourn.cli.session import Session, display_options, opened
from sojourn.cli.taskoptions import PATH, task_options, tasks_from
from sojourn.taskfiles import is_task_file, read_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.task import Task


_words_argument = click.argument(
    WORDS,
    nargs=-1,
    type=PATH,
    metavar="[SCRIPT|COMMAND|TASK.YAML|MAIN.TF] [ARGUMENTS]...",
    expose_value=False,  # `Typed` knows more of them
)
_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would be uploaded and created, then exit."
)


@click.command(cls=WithCommand, options_metavar="[OPTIONS]")
@_words_argument
@task_options
@click.option("--gitignore", is_flag=True, help="Do not upload files that .gitignore excludes.")
@_dry_run_option
@click.option("-d", "--detach", is_flag=True, help="Print the ID and exit.")
@click.option("--keep", is_flag=True, help="Do not delete the task at the end.")
@click.option("--keep-failed", is_flag=True, help="Do not delete the task if it fails.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@display_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    gitignore: bool,
    dry_run: bool,
    detach: bool,
    keep: bool,
    keep_failed: bool,
    timestamps: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a script on a machine, follow its log, download its results, delete everything.

    Options come first: everything after the script or command is passed to it.

    Exits with the script's exit code, 124 after a timeout, or 1 if the script succeeded but some of
    its output could not be stored. Ctrl-C detaches; the task keeps running.

    \b
    sojourn run python3 -c 'print("hello")'
    sojourn run --workdir . --output results train.sh
    sojourn run --workdir . --output results python3 train.py --lr 0.1
    sojourn run --dry-run --workdir . train.sh
    sojourn run --workdir . --env 'WANDB_*' --parallelism 4 train.sh
    sojourn run --detach task.yaml
    generate | sojourn run -
    sojourn run main.tf
    """
    with opened(as_json=as_json) as session:
        tasks = tasks_from(ctx, options, session.ctx)
        if dry_run:
            ctx.exit(show_plan(session, tasks, gitignore))
    ranks = any(task.parallelism > 1 for task in tasks)
    with opened(as_json=as_json, timestamps=timestamps, ranks=ranks) as session:
        typed = Typed.of(ctx)
        logs = _log_files(typed, len(tasks))
        if detach:
            _tell_of_no_logs(session, logs)
        what: dict[str, Any] = {"command": typed.command, "gitignore": gitignore}
        how = {"detach": detach, "keep": keep, "keep_failed": keep_failed, "log_files": logs}
        ctx.exit(run_through(session, tasks, **what, **how))


@click.command(cls=WithCommand, options_metavar="[OPTIONS]")
@_words_argument
@task_options
@click.option("--gitignore", is_flag=True, help="Do not upload files that .gitignore excludes.")
@_dry_run_option
@display_options
@click.pass_context
def create(
    ctx: click.Context,
    /,
    gitignore: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Start a task and print its ID; the same as `sojourn run --detach`.

    \b
    sojourn create --workdir . --output results train.sh
    """
    with opened(as_json=as_json) as session:
        tasks = tasks_from(ctx, options, session.ctx)
        if dry_run:
            ctx.exit(show_plan(session, tasks, gitignore))
        typed = Typed.of(ctx)
        _tell_of_no_logs(session, _log_files(typed, len(tasks)))
        what = {"command": typed.command, "gitignore": gitignore, "detach": True}
        ctx.exit(run_through(session, tasks, **what))


def show_plan(session: Session, tasks: list[Task], gitignore: bool) -> int:
    """What creating these tasks would do."""
    from sojourn import api
    from sojourn.api import rows
    from sojourn.cli.plan import plan_text

    for task in tasks:
        plan = api.plan(task, gitignore=gitignore, ctx=session.ctx)
        session.renderer.result(rows.plan(plan), plan_text(plan, task))
    return 0


def _log_files(typed: Typed, count: int) -> list[Path | None]:
    """Where the log of each task goes when it has ended, if its file says so."""
    file = Path(typed.words[0])
    if typed.dashed or not is_task_file(file):
        return [None] * count
    return [found.log_file for found in read_tasks(file)]


def _tell_of_no_logs(session: Session, logs: Sequence[Path | None]) -> None:
    """Nobody is there at the end to write them."""
    for log in filter(None, logs):
        session.ctx.warn(f"Not writing log_file {log}: that needs a run without --detach")
