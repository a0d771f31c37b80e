"""`sojourn status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.chosen import chosen, last_one
from sojourn.cli.gone import gone_row
from sojourn.cli.session import display_options, id_argument, opened
from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from sojourn.core.interfaces import Member


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
    from sojourn.cli.rows import status_lines, table

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
        now = handle.status()
        machines = handle.machines()
        events = handle.events()
        ranks = {rank.machine: rank.rank for rank in now.ranks if rank.machine}
        about = rows.About.stored(handle) if now.ranks else rows.About()
        row = rows.status(handle, now, about, machines, events)
        lines = status_lines(handle, now, about)
        lines += table([_cells(machine, ranks.get(machine.id)) for machine in machines])
        lines += [f"  {event.time}  {event.description}" for event in events[-5:]]
        session.renderer.result(row, lines)


def _cells(machine: Member, rank: int | None) -> tuple[str, ...]:
    """Of the newest, not all is known yet."""
    carries = "" if rank is None else f"rank {rank}"
    since = f"since {machine.started}" if machine.started else ""
    return f"  machine {machine.id}", carries, machine.address, since
