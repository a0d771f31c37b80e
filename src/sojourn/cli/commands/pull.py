"""`sojourn pull`."""

from __future__ import annotations

import click

from sojourn.cli.session import (
    check_into,
    id_argument,
    into_option,
    json_option,
    opened,
    output_option,
)


@click.command()
@id_argument
@into_option("A folder to use instead of the task's own workdir.")
@output_option
@json_option
def pull(id: str, into: str | None, output: str | None, as_json: bool) -> None:
    """Bring the output of a task home; at any time, also while it runs.

    A local file that you or another task changed is kept as NAME.local.

    \b
    sojourn pull tpi-brave-amber-otter
    sojourn pull brave --into /tmp/look
    """
    from sojourn import api

    with opened(as_json=as_json) as session:
        check_into(into)
        written = api.get(id, ctx=session.ctx).pull(into, output=output)
        session.renderer.result({"type": "pulled", "files": written}, "\n".join(written))
