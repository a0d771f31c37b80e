"""`sojourn status`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sojourn.cli.session import id_argument, json_option, opened

if TYPE_CHECKING:
    from sojourn.core.interfaces import Machine


@click.command()
@id_argument
@json_option
def status(id: str, as_json: bool) -> None:
    """Show the state of a task, of its ranks and machines.

    \b
    sojourn status tpi-brave-amber-otter
    sojourn status brave --json
    """
    show_status(id, as_json)


def show_status(id: str, as_json: bool) -> None:
    """Print one task's state."""
    from sojourn import api
    from sojourn.cli.rows import status_row, status_text, table

    with opened(as_json=as_json) as session:
        handle = api.get(id, ctx=session.ctx)
        now = handle.status()
        machines = handle.machines()
        events = handle.events()
        row = status_row(handle, now) | {
            "machines": [asdict(machine) for machine in machines],
            "events": [event.to_dict() for event in events],
        }
        text = [status_text(handle, now)]
        if machines:
            text.append(table([_row(machine) for machine in machines]))
        text.extend(f"  {event.time}  {event.description}" for event in events[-5:])
        session.renderer.result(row, "\n".join(text))


def _row(machine: Machine) -> tuple[str, str, str]:
    """Of the newest, not all is known yet."""
    since = f"since {machine.started}" if machine.started else ""
    return f"  machine {machine.id}", machine.address, since
