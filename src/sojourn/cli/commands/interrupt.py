"""`sojourn interrupt`."""

from __future__ import annotations

import click

from sojourn.cli.session import id_argument, json_option, opened


@click.command()
@id_argument
@click.option("--rank", type=int, help="Only the machine of this rank.")
@click.option("--no-notice", is_flag=True, help="Without giving it time to store its work.")
@json_option
def interrupt(id: str, rank: int | None, no_notice: bool, as_json: bool) -> None:
    """Take machines of a task away like a spot market does: see how your script recovers.

    \b
    sojourn interrupt tpi-brave-amber-otter
    sojourn interrupt brave --rank 0 --no-notice
    """
    from sojourn import api

    with opened(as_json=as_json) as session:
        machines = api.get(id, ctx=session.ctx).interrupt(rank, notice=not no_notice)
        session.renderer.result({"type": "interrupted", "machines": machines}, "\n".join(machines))
