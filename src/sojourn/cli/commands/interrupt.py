"""`sojourn interrupt`."""

from __future__ import annotations

import click

from sojourn.cli.chosen import chosen
from sojourn.cli.session import display_options, id_argument, opened


@click.command()
@id_argument
@click.option("--rank", type=int, help="Interrupt only the machine of this rank.")
@click.option("--no-notice", is_flag=True, help="Do not give the machine time to save its work.")
@display_options
def interrupt(id: str | None, rank: int | None, no_notice: bool, as_json: bool) -> None:
    """Take machines of a task away, like a spot market does, to test how your script recovers.

    Without ID, uses the last task created in this folder.

    \b
    sojourn interrupt tpi-brave-amber-otter
    sojourn interrupt brave --rank 0 --no-notice
    """
    with opened(as_json=as_json) as session:
        machines = chosen(session, id).interrupt(rank, notice=not no_notice)
        session.renderer.result({"type": "interrupted", "machines": machines}, machines)
