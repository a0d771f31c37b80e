"""`sojourn doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import display_options, opened
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.cli.session import Session


@click.command()
@click.option(
    "--role",
    metavar="CLOUD",
    help="Print the least role that runs tasks in this cloud, or exactly those of FILE.",
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
    from sojourn import api, clouds

    name = clouds.known(cloud)
    tasks = [
        task
        for task in (api.load_all(file).values() if file else ())
        if clouds.known(task.cloud) == name
    ]
    if file and not tasks:
        raise InvalidInput("file", f"{file} has no task with cloud {name}")
    text = clouds.role_for(name, tasks)
    session.renderer.result({"type": "role", "cloud": name, "role": text}, text)
