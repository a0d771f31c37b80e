"""`sojourn list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened
from sojourn.core.errors import NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.core.status import Status


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

    with opened(as_json=as_json) as session:
        rows = []
        for handle in api.list_tasks(ctx=session.ctx):
            try:
                status = handle.status()
            except NotFound:
                continue  # deleted meanwhile
            except SojournError as error:
                status = _unreadable(error)
            session.renderer.result(status_row(handle, status), "")
            rows.append((handle.id, str(status.state), handle.cloud, status.reason))
        if not as_json:
            session.renderer.result({}, table(rows))
            if not rows:
                session.ctx.note("There are no tasks. Start one with: sojourn run")


def _unreadable(error: SojournError) -> Status:
    from sojourn.core.status import State, Status

    return Status(State.QUEUED, f"its state cannot be read: {error.message}", None, ())
