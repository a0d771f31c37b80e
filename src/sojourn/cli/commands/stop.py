"""`sojourn stop`."""

from __future__ import annotations

import click

from sojourn.cli.each import to_each, with_state
from sojourn.cli.session import ids_argument, json_option


@click.command()
@ids_argument
@json_option
def stop(ids: tuple[str, ...], as_json: bool) -> None:
    """Take the machines of tasks away, after they stored their work.

    What they did so far is kept: `sojourn start` resumes it, `sojourn pull` brings it home.

    \b
    sojourn stop tpi-brave-amber-otter
    """
    to_each(ids, as_json, with_state(lambda handle: handle.stop()))
