"""Rows as text for people: what `sojourn.api.rows` has of tasks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sojourn.cli.screen import Coloured, Line, state_colour
from sojourn.cli.times import age
from sojourn.core.durations import format_seconds
from sojourn.core.ids import TaskId
from sojourn.core.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = ["status_lines", "table", "task_columns", "task_table"]

_HEADER = ("ID", "STATE", "AGE", "RAN", "CLOUD", "MACHINE", "COMMAND", "REASON")
_UNKNOWN = "-"
_WIDEST = 32  # characters of a command; JSON has all of it


def status_lines(row: Mapping[str, Any]) -> list[Line]:
    """A task with its ranks, its machines and the last events."""
    state, created = row["state"], age(row["created"])
    lines: list[Line] = [(f"{row['id']}  ", Coloured(state, state_colour(state)))]
    lines += [f"  {text}" for text in (row["reason"], row["command"]) if text]
    known = [f"cloud {row['cloud']}"]
    known += [f"machine type {row['machine']}"] if row["machine"] else []
    known += [f"created {created} ago"] if created else []
    verb = "ran" if State(state).ended else "running for"
    known += [] if row["seconds"] is None else [f"{verb} {format_seconds(row['seconds'])}"]
    lines.append(f"  {', '.join(known)}")
    ranks = [
        (f"  rank {rank['rank']}", rank["state"], f"attempt {rank['attempt']}", rank["reason"])
        for rank in row["ranks"]
    ]
    if len(ranks) > 1 or any(rank["attempt"] > 1 for rank in row["ranks"]):
        lines += table(ranks)
    lines += table([_machine_cells(each) for each in row["machines"]])
    return lines + [f"  {event['time']}  {event['description']}" for event in row["events"][-5:]]


def _machine_cells(machine: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the newest, not all is known yet."""
    carries = "" if machine["rank"] is None else f"rank {machine['rank']}"
    since = f"since {machine['started']}" if machine["started"] else ""
    return f"  machine {machine['id']}", carries, machine["address"], since


def task_columns(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What `list` shows of a task. No cell but the last is empty: columns can be counted."""
    ran, command = row["seconds"], row["command"].replace("\n", " ")
    return (
        row["id"],
        row["state"],
        age(row["created"]) or _UNKNOWN,
        _UNKNOWN if ran is None else format_seconds(ran),
        row["cloud"],
        row["machine"] or _UNKNOWN,
        (command if len(command) <= _WIDEST else f"{command[: _WIDEST - 3]}...") or _UNKNOWN,
        row["reason"],
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
