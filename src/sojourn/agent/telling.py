"""What a machine is doing, for the status that people see: its lease carries it."""

from __future__ import annotations

from sojourn.core.activity import Activity, Doing
from sojourn.core.errors import AuthError, QuotaError
from sojourn.core.events import Event, Progress

__all__ = ["Telling"]


_AFTER_SCRIPT = {
    Doing.LOG_FULL: Doing.ENDED_FULL,
    Doing.FILES_FULL: Doing.ENDED_FULL,
    Doing.LOG_REFUSED: Doing.ENDED_REFUSED,
    Doing.FILES_REFUSED: Doing.ENDED_REFUSED,
}


class Telling:
    """Written by whoever does something, read at the next renewal of the lease."""

    def __init__(self) -> None:
        self.restoring: Activity | None = Activity(Doing.RESTORING)
        self.gathering: Activity | None = None
        self._log: Doing | None = None
        self._files: Doing | None = None
        self._slow: Doing | None = None
        self._ended = False
        self._code: int | None = None

    @property
    def activity(self) -> Activity | None:
        """The one thing that matters most."""
        trouble = self._log or self._files or self._slow
        if self._ended and trouble in _AFTER_SCRIPT:
            return Activity.after(_AFTER_SCRIPT[trouble], self._code)
        return Activity(trouble) if trouble else self.gathering or self.restoring

    def on_event(self, event: Event) -> None:
        """Take the progress of restoring."""
        if isinstance(event, Progress):
            self.restoring = Activity(Doing.RESTORING, event.done, event.total)

    def on_end(self, code: int | None) -> None:
        """The script has ended; from now on only what it left is stored."""
        self._code = code
        self._ended = True

    def on_log(self, error: Exception | None) -> None:
        """How storing the log went."""
        self._log = _trouble(error, Doing.LOG_FULL, Doing.LOG_REFUSED)

    def on_files(self, error: Exception | None) -> None:
        """How taking a snapshot went."""
        self._files = _trouble(error, Doing.FILES_FULL, Doing.FILES_REFUSED)

    def on_snapshot(self, took: float, notice: float) -> None:
        """How long the last one took, and how long a machine has from a notice to its end."""
        self._slow = Doing.SLOW if 0 < notice < took else None


def _trouble(error: Exception | None, full: Doing, refused: Doing) -> Doing | None:
    """What cannot be reached cannot be told either, and comes back by itself."""
    if isinstance(error, QuotaError):
        return full
    return refused if isinstance(error, AuthError) else None
