"""`sojourn list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened

if TYPE_CHECKING:
    from sojourn.core.errors import SojournError


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
        missed: list[SojournError] = []
        for handle, status in api.overview(ctx=session.ctx, missed=missed):
            session.renderer.result(status_row(handle, status), "")
            rows.append((handle.id, str(status.state), handle.cloud, status.reason))
        if not as_json:
            session.renderer.result({}, table(rows))
            if missed and not rows:
                session.ctx.note("No tasks were found where it was possible to look.")
            elif not rows:
                session.ctx.note("There are no tasks. Start one with: sojourn run")
