"""`sojourn attach`."""

from __future__ import annotations

import click

from sojourn.cli.chosen import chosen, last_one
from sojourn.cli.following import see_through
from sojourn.cli.session import display_options, id_argument, opened


@click.command()
@id_argument
@click.option("--keep", is_flag=True, help="Do not delete the task at the end.")
@click.option("--keep-failed", is_flag=True, help="Do not delete the task if it fails.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@display_options
@click.pass_context
def attach(
    ctx: click.Context,
    id: str | None,
    keep: bool,
    keep_failed: bool,
    timestamps: bool,
    as_json: bool,
) -> None:
    """Follow a task to its end, then download its results and delete it, as `sojourn run` does.

    Exits with the script's exit code. Ctrl-C detaches; press it twice to stop the task. Without
    ID, uses the last task created in this folder.

    \b
    sojourn attach
    sojourn attach tpi-brave-amber-otter
    """
    from sojourn import api

    with opened(as_json=as_json) as session:
        found = chosen(session, last_one(id))
        ranks = found.task().parallelism > 1
    with opened(as_json=as_json, timestamps=timestamps, ranks=ranks) as session:
        handle = api.get(found.id, cloud=found.cloud, ctx=session.ctx)
        ctx.exit(see_through(session, handle, keep=keep, keep_failed=keep_failed))
