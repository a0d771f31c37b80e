"""Results as text for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sojourn.api.rows import run_seconds
from sojourn.cli.screen import Coloured, Line, state_colour
from sojourn.cli.times import age
from sojourn.core.durations import format_seconds
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle
    from sojourn.api.rows import About
    from sojourn.core.status import Status

__all__ = ["status_lines", "table", "task_columns", "task_table"]

_HEADER = ("ID", "STATE", "AGE", "RAN", "CLOUD", "MACHINE", "COMMAND", "REASON")
_UNKNOWN = "-"
_WIDEST = 32  # characters of a command; JSON has all of it


def status_lines(handle: Handle, status: Status, about: About) -> list[Line]:
    """The same for people."""
    state = str(status.state)
    lines: list[Line] = [(f"{handle.id}  ", Coloured(state, state_colour(state)))]
    if status.reason:
        lines.append(f"  {status.reason}")
    lines += [f"  {about.command}"] if about.command else []
    known = [f"cloud {handle.cloud}"]
    known += [f"machine type {about.machine}"] if about.machine else []
    known += [f"created {age(about.created)} ago"] if age(about.created) else []
    ran = run_seconds(status)
    verb = "ran" if status.state.ended else "running for"
    known += [] if ran is None else [f"{verb} {format_seconds(ran)}"]
    lines.append(f"  {', '.join(known)}")
    rows = [
        (f"  rank {rank.rank}", str(rank.state), f"attempt {rank.attempt}", rank.reason)
        for rank in status.ranks
    ]
    if len(rows) > 1 or any(rank.attempt > 1 for rank in status.ranks):
        lines.extend(table(rows))
    return lines


def task_columns(handle: Handle, status: Status, about: About) -> tuple[str, ...]:
    """What `list` shows of a task. No cell but the last is empty: columns can be counted."""
    ran = run_seconds(status)
    command = about.command.replace("\n", " ")
    return (
        handle.id,
        str(status.state),
        age(about.created) or _UNKNOWN,
        _UNKNOWN if ran is None else format_seconds(ran),
        handle.cloud,
        about.machine or _UNKNOWN,
        (command if len(command) <= _WIDEST else f"{command[: _WIDEST - 3]}...") or _UNKNOWN,
        status.reason,
    )


def task_table(
    rows: Sequence[tuple[str, ...]], header: tuple[str, ...] = _HEADER, *, whole: bool = False
) -> list[Line]:
    """Tasks, by id and state, with a header; nothing if there are none.

    `whole`: with their whole ids.
    """
    if not rows:
        return []
    names = {} if whole else _names([row[0] for row in rows])
    rows = [(names.get(row[0], row[0]), *row[1:]) for row in rows]
    first, *lines = table([header, *rows])
    before = max(len(row[0]) for row in (header, *rows)) + 2
    states = [row[1] for row in rows]
    return [first, *(_coloured(*each, before) for each in zip(lines, states, strict=True))]


def _coloured(line: str, state: str, before: int) -> Line:
    after = before + len(state)
    return line[:before], Coloured(line[before:after], state_colour(state)), line[after:]


def _names(ids: Sequence[str]) -> dict[str, str]:
    """For each id its name, which commands take as well; or the id, if several share the name."""
    names = {id: TaskId.parse(id).name for id in ids}  # noqa: A001
    counts = Counter(names.values())
    return {whole: name if name and counts[name] == 1 else whole for whole, name in names.items()}


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns as wide as they have to be."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
