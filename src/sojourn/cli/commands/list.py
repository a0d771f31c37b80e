"""`sojourn list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.render import Renderer
    from sojourn.core.errors import SojournError
    from sojourn.core.status import Status


@click.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print IDs only, one per line.")
@json_option
def list_(quiet: bool, as_json: bool) -> None:
    """List all tasks, with their states.

    Shows age and machine type only for tasks created on this computer.

    \b
    sojourn list
    sojourn list --quiet | xargs sojourn stop
    sojourn list --json | jq -r .id
    """
    from sojourn import api

    with opened(as_json=as_json) as session:
        missed: list[SojournError] = []
        tasks = api.overview(ctx=session.ctx, missed=missed)
        if tasks:
            _show(session.renderer, tasks, quiet=quiet, as_json=as_json)
        elif not quiet and not as_json:
            where = " in the clouds that could be reached" if missed else ""
            session.ctx.note(f"No tasks found{where}. Run `sojourn run --help` to start one.")


def _show(
    renderer: Renderer, tasks: list[tuple[Handle, Status]], *, quiet: bool, as_json: bool
) -> None:
    from sojourn.cli.rows import status_row, task_columns, task_table  # needed if there are any

    if as_json:
        for handle, status in tasks:
            origin = handle.origin()
            created, machine = (origin.created, origin.machine) if origin else ("", "")
            renderer.result(status_row(handle, status, created, machine), "")
    elif quiet:
        renderer.result({}, [handle.id for handle, _ in tasks])
    else:
        renderer.result({}, task_table([task_columns(*each) for each in tasks]))
