"""`sojourn start`."""

from __future__ import annotations

import click

from sojourn.cli.each import to_each, with_state
from sojourn.cli.session import ids_argument, json_option


@click.command()
@ids_argument
@json_option
def start(ids: tuple[str, ...], as_json: bool) -> None:
    """Resume tasks that were stopped, from their last snapshots.

    \b
    sojourn start tpi-brave-amber-otter
    """
    to_each(ids, as_json, with_state(lambda handle: handle.start()))
