"""Results as rows for --json and as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.cli.times import age

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle
    from sojourn.core.status import Status

__all__ = ["status_lines", "status_row", "table", "task_columns", "task_table"]

_HEADER = ("ID", "STATE", "AGE", "CLOUD", "MACHINE", "REASON")
_UNKNOWN = "-"


def status_row(handle: Handle, status: Status, created: str, machine: str) -> dict[str, Any]:
    """The `task` row of the documented schema."""
    return {
        "type": "task",
        "id": handle.id,
        "cloud": handle.cloud,
        "state": str(status.state),
        "reason": status.reason,
        "exit_code": status.exit_code,
        "counts": status.counts,
        "ranks": [
            {
                "rank": rank.rank,
                "state": str(rank.state),
                "attempt": rank.attempt,
                "exit_code": rank.exit_code,
                "reason": rank.reason,
                "machine": rank.machine,
            }
            for rank in status.ranks
        ],
        "created": created,
        "machine": machine,
    }


def status_lines(handle: Handle, status: Status, created: str, machine: str) -> list[str]:
    """The same for people."""
    lines = [f"{handle.id}  {status.state}"]
    if status.reason:
        lines.append(f"  {status.reason}")
    about = [f"cloud {handle.cloud}"]
    about += [f"machine type {machine}"] if machine else []
    about += [f"created {age(created)} ago"] if age(created) else []
    lines.append(f"  {', '.join(about)}")
    rows = [
        (f"  rank {rank.rank}", str(rank.state), f"attempt {rank.attempt}", rank.reason)
        for rank in status.ranks
    ]
    if len(rows) > 1 or any(rank.attempt > 1 for rank in status.ranks):
        lines.extend(table(rows))
    return lines


def task_columns(handle: Handle, status: Status) -> tuple[str, ...]:
    """What `list` shows of a task; no cell but the last is empty, so that columns can be counted.

    Age and machine type are known of tasks that this computer created.
    """
    origin = handle.origin()
    return (
        handle.id,
        str(status.state),
        (age(origin.created) if origin else "") or _UNKNOWN,
        handle.cloud,
        (origin.machine if origin else "") or _UNKNOWN,
        status.reason,
    )


def task_table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Tasks with a header; nothing if there are none."""
    return table([_HEADER, *rows]) if rows else []


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns as wide as they have to be."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
