"""`sojourn start`."""

from __future__ import annotations

import click

from sojourn.cli.each import to_each, with_state
from sojourn.cli.session import display_options, ids_argument


@click.command()
@ids_argument
@display_options
@click.pass_context
def start(ctx: click.Context, ids: tuple[str, ...], as_json: bool) -> None:
    """Resume stopped tasks from their last snapshots.

    Without IDS, uses the last task created in this folder.

    \b
    sojourn start tpi-brave-amber-otter
    """
    ctx.exit(to_each(ids, as_json, with_state(lambda handle: handle.start())))
