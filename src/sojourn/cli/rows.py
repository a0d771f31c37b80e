"""Results as rows for --json and as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle
    from sojourn.core.status import Status

__all__ = ["status_row", "status_text", "table"]


def status_row(handle: Handle, status: Status) -> dict[str, Any]:
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
    }


def status_text(handle: Handle, status: Status) -> str:
    """The same for people."""
    lines = [f"{handle.id}  {status.state}"]
    if status.reason:
        lines.append(f"  {status.reason}")
    rows = [
        (f"  rank {rank.rank}", str(rank.state), f"attempt {rank.attempt}", rank.reason)
        for rank in status.ranks
    ]
    if len(rows) > 1 or any(rank.attempt > 1 for rank in status.ranks):
        lines.append(table(rows))
    return "\n".join(lines)


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as they have to be."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
