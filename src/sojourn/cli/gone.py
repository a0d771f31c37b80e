"""A task that was deleted: what this computer still knows of it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.cli import BEGAN
from sojourn.cli.render import state_text
from sojourn.cli.session import is_verbose
from sojourn.cli.steps import name
from sojourn.cli.times import age
from sojourn.core.clock import utc
from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from sojourn.engine.ledger import Ending

__all__ = ["at_home", "gone_error", "gone_meanwhile", "gone_row"]


def gone_error(id: str | None) -> NotFound | None:
    """The error that says how a task ended; None if this computer does not know."""
    known = _known(id)
    if known is None:
        return None
    found, ending = known
    found = found if is_verbose() else name(found)
    where = f" Its results are in {at_home(ending.results)}." if ending.results else ""
    return NotFound(
        f"Task {found} was deleted {_when(ending)}: {_how(ending)}.{where}",
        hint=f"Run `sojourn logs {found}` for its log.",
    )


def gone_meanwhile(id: str) -> tuple[str, NotFound] | None:
    """The id of a task that was deleted since this command began, and the same error."""
    from sojourn.api.finding import is_remembered

    known = _known(id)
    ends = known is not None and is_remembered(known[0])  # forgotten at the very end
    known, error = _known(id), gone_error(id)
    began = utc(datetime.fromtimestamp(BEGAN, timezone.utc))
    if known is None or error is None or not (ends or known[1].deleted >= began):
        return None
    return known[0], error


def gone_row(id: str | None) -> tuple[dict[str, Any], list[str]] | None:
    """The row of such a task for --json, and its lines for people."""
    from sojourn import api
    from sojourn.api import rows

    known = _known(id)
    if known is None:
        return None
    saved = api.saved_log(known[0])
    return rows.deleted_task(*known, log=str(saved[1] if saved else "")), _lines(*known)


def _lines(id: str, ending: Ending) -> list[str]:
    results = f"results in {at_home(ending.results)}" if ending.results else "no results here"
    return [f"{id}  {_how(ending)}", f"  deleted {_when(ending)}, {results}"]


def at_home(path: str | Path) -> str:
    """A path as shells show it: `~` for the user's home."""
    home, text = str(Path.home()), str(path)
    return "~" + text[len(home) :] if f"{text}/".startswith(f"{home}/") else text


def _known(id: str | None) -> tuple[str, Ending] | None:
    from sojourn.api.finding import ending

    return ending(id) if id else None


def _when(ending: Ending) -> str:
    return f"{age(ending.deleted)} ago" if age(ending.deleted) else "before"


def _how(ending: Ending) -> str:
    return state_text(ending.state, ending.exit_code, ending.reason)
