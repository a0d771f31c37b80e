"""Supervisors that were started in vain: the next one waits, and somebody is told."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.host.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Starts"]

_LONGEST_WAIT = 30.0


class Starts:
    """How often a supervisor was started in a row without having lived for long since.

    Kept in a file, as each command may be the one that starts it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def count(self) -> int:
        return self._read()[0]

    def are_due(self) -> bool:
        """Whether another one may be started; the first that failed makes nobody wait."""
        count, last = self._read()
        wait = min(_LONGEST_WAIT, 0.1 * 2 ** min(count, 10)) if count > 1 else 0.0
        return not last <= time.time() < last + wait  # a clock may have been set back

    def add(self) -> None:
        with suppress(OSError):  # on a full disk, nobody waits
            write_whole(self._path, f"{self.count() + 1} {time.time()}", passing=True)

    def forget(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[int, float]:
        try:
            count, last = self._path.read_text().split()
            return int(count), float(last)
        except (OSError, ValueError):  # absent or damaged
            return 0, 0.0
