"""`sojourn doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import display_options, opened
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.cli.session import Session
    from sojourn.core.task import Task


@click.command()
@click.option(
    "--role",
    metavar="CLOUD",
    help="Print the least role that runs tasks in this cloud, or exactly what is in FILE.",
)
@click.argument("file", required=False, metavar="[FILE]")
@display_options
@click.pass_context
def doctor(ctx: click.Context, role: str | None, file: str | None, as_json: bool) -> None:
    """Check what is installed, which cloud credentials exist, and what works.

    Exits with 1 if something required does not work.

    \b
    sojourn doctor
    """
    from sojourn.cli.checkup import checkup
    from sojourn.cli.rows import table

    if file and not role:
        raise click.UsageError("FILE requires --role.")
    with opened(as_json=as_json) as session:
        if role:
            _print_role(session, role, file)
            return
        findings = list(checkup())
        for finding in findings:
            session.renderer.result({"type": "finding", **finding.to_dict()}, "")
        rows = [(f.verdict, f.subject, f.detail) for f in findings]
        if not as_json:
            session.renderer.result({}, table(rows))
    ctx.exit(1 if any(f.verdict == "problem" for f in findings) else 0)


def _print_role(session: Session, cloud: str, file: str | None) -> None:
    from sojourn import clouds

    name = clouds.known(cloud)
    tasks = _tasks_in(file, name) if file else []
    if file and not tasks:
        raise InvalidInput("file", f"{file} has no task, machine or runner with cloud {name}")
    text = clouds.role_for(name, tasks)
    session.renderer.result({"type": "role", "cloud": name, "role": text}, text)


def _tasks_in(file: str, cloud: str) -> list[Task]:
    """Those of a cloud; a machine or runner needs what a plain task does."""
    from pathlib import Path

    from sojourn import api, clouds
    from sojourn.core.task import Task
    from sojourn.taskfiles import NoTask, other_resources

    others = [
        Task("#!/bin/sh\n", cloud=cloud)
        for each in other_resources(Path(file))
        if each.has_machine and clouds.known(each.cloud or cloud) == cloud
    ]
    try:
        tasks = api.load_all(file).values()
    except NoTask:
        if not others:
            raise
        return others[:1]
    return [task for task in tasks if clouds.known(task.cloud) == cloud] + others[:1]
