"""The last line of a run: how it ended, how long it took, and where its results are."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.cli.gone import at_home
from sojourn.cli.times import seconds_between
from sojourn.core.durations import format_seconds
from sojourn.core.errors import NotFound, SojournError
from sojourn.core.sizes import size_of

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.events import Downloaded
    from sojourn.core.report import Report
    from sojourn.core.status import Status

__all__ = ["reports_of", "summarise"]


def reports_of(handle: Handle) -> list[Report]:
    """How its attempts ended; nothing if that cannot be told."""
    with suppress(NotFound, SojournError, OSError):
        return handle.reports()
    return []


def summarise(session: Session, id: str, now: Status, reports: list[Report]) -> None:
    """Tell it, after the results have come home."""
    home = session.downloaded
    ran = seconds_between([r.started for r in reports], [r.ended for r in reports])
    attempts = max((rank.attempt for rank in now.ranks), default=0)
    row = {
        "type": "ended",
        "id": id,
        "state": str(now.state),
        "exit_code": now.exit_code,
        "seconds": ran,
        "attempts": attempts,
        "files": home.files if home else 0,
        "bytes": home.bytes if home else 0,
        "results": home.folder if home else "",
    }
    code = "" if now.exit_code is None else f", exit code {now.exit_code}"
    took = "" if ran is None else f", ran {format_seconds(ran)}"
    tried = f", {attempts} attempts" if attempts > 1 else ""
    text = f"Summary: {now.state}{code}{took}{tried}{_brought(home)}"
    session.renderer.summary(row, text, str(now.state))


def _brought(home: Downloaded | None) -> str:
    if home is None:
        return ""
    files = "1 file" if home.files == 1 else f"{home.files:,} files"
    amount = f"{files} ({size_of(home.bytes)})" if home.files else "no new files"
    return f", {amount} in {at_home(home.folder)}"
