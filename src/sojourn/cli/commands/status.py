"""`sojourn status`."""

from __future__ import annotations

import click

from sojourn.cli.chosen import chosen, last_one
from sojourn.cli.gone import gone_row
from sojourn.cli.session import display_options, id_argument, opened
from sojourn.core.errors import NotFound


@click.command()
@id_argument
@display_options
def status(id: str | None, as_json: bool) -> None:
    """Show the state of a task, its ranks and its machines.

    Without ID, uses the last task created in this folder.

    \b
    sojourn status
    sojourn status tpi-brave-amber-otter
    sojourn status brave --json
    """
    show_status(id, as_json)


def show_status(id: str | None, as_json: bool) -> None:
    """Print one task's state."""
    from sojourn.api import rows
    from sojourn.cli.rows import status_lines

    id = last_one(id)  # noqa: A001
    with opened(as_json=as_json, document=True) as session:
        try:
            handle = chosen(session, id)
        except NotFound:
            gone = gone_row(id)
            if gone is None:
                raise
            session.renderer.result(*gone)
            return
        row = rows.status(handle, handle.status())
        session.renderer.result(row, status_lines(row))
