"""`sojourn list`."""

from __future__ import annotations

import click

from sojourn.cli.session import json_option, opened


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
        for handle, status in api.overview(ctx=session.ctx):
            session.renderer.result(status_row(handle, status), "")
            rows.append((handle.id, str(status.state), handle.cloud, status.reason))
        if not as_json:
            session.renderer.result({}, table(rows))
            if not rows:
                session.ctx.note("There are no tasks. Start one with: sojourn run")
