"""`sojourn list`."""

from __future__ import annotations

import click

from sojourn.cli.session import json_option, opened
from sojourn.core.errors import NotFound, SojournError


@click.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List all tasks, with their states.

    \b
    sojourn list
    sojourn list --json | jq -r .id
    """
    from sojourn import api
    from sojourn.cli.rows import status_row, table
    from sojourn.core.status import State, Status

    with opened(as_json=as_json) as session:
        rows = []
        for handle in api.list_tasks(ctx=session.ctx):
            try:
                status = handle.status()
            except NotFound:
                continue  # deleted meanwhile
            except SojournError as error:
                status = Status(State.QUEUED, f"its state cannot be read: {error}", None, ())
            session.renderer.result(status_row(handle, status), "")
            rows.append((handle.id, str(status.state), handle.cloud, status.reason))
        if not as_json:
            session.renderer.result({}, table(rows))
            if not rows:
                session.ctx.note("There are no tasks. Start one with: sojourn run")
