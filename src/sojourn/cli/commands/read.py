"""`sojourn read`, for users of the old tool."""

from __future__ import annotations

import click

from sojourn.cli.commands.logs import Look, show_logs
from sojourn.cli.commands.status import show_status
from sojourn.cli.session import display_options, id_argument


@click.command()
@id_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the task ends.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@display_options
@click.pass_context
def read(ctx: click.Context, id: str | None, follow: bool, timestamps: bool, as_json: bool) -> None:
    """Show the log and the state of a task, like the old tool.

    Without ID, uses the last task created in this folder.

    \b
    sojourn read tpi-brave-amber-otter --follow
    """
    code = show_logs(id, Look(follow=follow, timestamps=timestamps), as_json)
    if not follow:
        show_status(id, as_json)
    ctx.exit(code)
