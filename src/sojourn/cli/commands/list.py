"""`sojourn list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened

if TYPE_CHECKING:
    from sojourn.core.errors import SojournError


@click.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print IDs only, one per line.")
@json_option
def list_(quiet: bool, as_json: bool) -> None:
    """List all tasks, with their states.

    Age and machine type are shown for tasks that were created on this computer.

    \b
    sojourn list
    sojourn list --quiet | xargs sojourn stop
    sojourn list --json | jq -r .id
    """
    from sojourn import api
    from sojourn.cli.rows import status_row, task_columns, task_table

    with opened(as_json=as_json) as session:
        missed: list[SojournError] = []
        tasks = api.overview(ctx=session.ctx, missed=missed)
        if as_json:
            for handle, status in tasks:
                origin = handle.origin()
                created, machine = (origin.created, origin.machine) if origin else ("", "")
                session.renderer.result(status_row(handle, status, created, machine), "")
        elif quiet:
            session.renderer.result({}, [handle.id for handle, _ in tasks])
        else:
            session.renderer.result({}, task_table([task_columns(*each) for each in tasks]))
            if not tasks:
                where = " in the clouds that could be reached" if missed else ""
                session.ctx.note(f"No tasks found{where}. Run `sojourn run --help` to start one.")
