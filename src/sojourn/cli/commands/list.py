"""`sojourn list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import display_options, is_verbose, opened

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.render import Renderer
    from sojourn.core.errors import SojournError
    from sojourn.core.status import Status


@click.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print IDs only, one per line.")
@display_options
def list_(quiet: bool, as_json: bool) -> None:
    """List all tasks, with their states.

    Shows age, machine type and command only for tasks created on this computer. All commands take
    the names shown; `--verbose` shows whole IDs.

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
    from sojourn.api import rows
    from sojourn.cli.rows import task_columns, task_table

    if as_json:
        for task in tasks:
            renderer.result(rows.task(*task), "")
    elif quiet:
        renderer.result({}, [handle.id for handle, _ in tasks])
    else:
        lines = [task_columns(rows.task(*task)) for task in tasks]
        renderer.result({}, task_table(lines, whole=is_verbose()))
