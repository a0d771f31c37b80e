"""The end of a machine's console, for errors: of a machine that does not boot, all there is.

A machine can print anything there. It is quoted and never interpreted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud

__all__ = ["console_end", "last_lines"]

_LINES = 10
_LONGEST = 200  # characters of a line
_SIZE = 64 * 1024  # characters that are looked at
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # and other orders to a terminal


def console_end(ctx: Context, cloud: Cloud, id: TaskId, machine: str) -> list[str]:
    """The last lines that a machine printed. `machine`: empty if it has not told of itself.

    An error is about something else: where nobody knows or may look, there are none.
    """
    try:
        scaler = cloud.scaler(id)
        if not machine:
            fleet = scaler.fleet(ctx)
            machine = fleet.machines[0].id if fleet and fleet.machines else ""
        return last_lines(scaler.console(ctx, machine)) if machine else []
    except (SojournError, OSError):
        return []


def last_lines(text: str) -> list[str]:
    """Of what a console has, in characters that do nothing on a terminal."""
    plain = _COLOURS.sub("", text[-_SIZE:])
    lines = [_printable(line) for line in re.split(r"\r*\n|\r", plain)]
    return [line for line in lines if line.strip()][-_LINES:]


def _printable(line: str) -> str:
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in line)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
