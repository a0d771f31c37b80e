"""`sojourn pull`."""

from __future__ import annotations

import click

from sojourn.cli.chosen import chosen, last_one
from sojourn.cli.session import (
    check_into,
    display_options,
    id_argument,
    into_option,
    opened,
    output_option,
)


@click.command()
@id_argument
@into_option("Download into this folder instead of the task's workdir.")
@output_option
@display_options
def pull(id: str | None, into: str | None, output: str | None, as_json: bool) -> None:
    """Download the results of a task at any time, even while it runs.

    Keeps local files that you or another task changed as NAME.local. Without ID, uses the last task
    created in this folder.

    \b
    sojourn pull
    sojourn pull tpi-brave-amber-otter
    sojourn pull brave --into /tmp/look
    """
    with opened(as_json=as_json) as session:
        check_into(into)
        written = chosen(session, last_one(id)).pull(into, output=output)
        session.renderer.result({"type": "pulled", "files": written}, written)
