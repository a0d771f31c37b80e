"""What somebody is doing just now, as they wrote it down: to be shown, and for nothing else.

Machines and other commands write it, so nothing of it is believed but a few known words and plain
numbers: a lie shows a wrong text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["Activity", "Doing"]

_LARGEST = 1 << 60  # bytes; more is a lie
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Doing(str, Enum):
    """What can be told."""

    GATHERING = "gathering"
    RESTORING = "restoring"
    UPLOADING = "uploading"
    LOG_FULL = "log-full"
    LOG_REFUSED = "log-refused"
    FILES_FULL = "files-full"
    FILES_REFUSED = "files-refused"
    SLOW = "slow-snapshots"
    ENDED_FULL = "ended-full"
    ENDED_REFUSED = "ended-refused"

    @property
    def trouble(self) -> bool:
        """Whether somebody has to do something about it."""
        return self not in (Doing.GATHERING, Doing.RESTORING, Doing.UPLOADING)

    @property
    def after_script(self) -> bool:
        """Whether the script has ended, and its results are not stored yet."""
        return self in (Doing.ENDED_FULL, Doing.ENDED_REFUSED)


_FULL = "no space left in the store"
_REFUSED = "the store denied access"
_UNSTORED = "its results are not stored yet"
_OR_PULL = "or run `sojourn pull` to download what is stored"
_WORDS = {
    Doing.GATHERING: "waiting for all machines of the gang",
    Doing.RESTORING: "restoring workdir",
    Doing.UPLOADING: "uploading workdir",
    Doing.LOG_FULL: f"cannot store the log: {_FULL}",
    Doing.LOG_REFUSED: f"cannot store the log: {_REFUSED}",
    Doing.FILES_FULL: f"cannot store snapshots: {_FULL}",
    Doing.FILES_REFUSED: f"cannot store snapshots: {_REFUSED}",
    Doing.SLOW: "snapshots take longer than the notice of an interruption, which may lose work",
    Doing.ENDED_FULL: f"{_UNSTORED}: {_FULL}; make room, {_OR_PULL}",
    Doing.ENDED_REFUSED: f"{_UNSTORED}: {_REFUSED}; allow it again, {_OR_PULL}",
}
_CODES = 256  # a process has one of so many


@dataclass(frozen=True)
class Activity:
    """One thing, and how many bytes (or machines) of it are done.

    A `total` of 0: not known, or no matter. After the script, `done` is its exit code.
    """

    doing: Doing
    done: int = 0
    total: int = 0

    @property
    def step(self) -> str:
        """What it is, without how far."""
        if self.doing.after_script:
            code = "" if self.exit_code is None else f" with exit code {self.exit_code}"
            return f"the script has ended{code}, but {_WORDS[self.doing]}"
        return _WORDS[self.doing]

    @classmethod
    def after(cls, doing: Doing, code: int | None) -> Activity:
        """What keeps the results of a script that has ended with this exit code from the store."""
        return cls(doing) if code is None or not 0 <= code < _CODES else cls(doing, code, _CODES)

    @property
    def exit_code(self) -> int | None:
        """Of a script that has ended; None: not known, or it runs."""
        return self.done if self.doing.after_script and self.total else None

    @property
    def text(self) -> str:
        """For people: restoring workdir: 1.2 of 3.4 GiB."""
        if self.doing.after_script:
            return self.step
        if self.doing is Doing.GATHERING and self.total:
            return f"{self.step}: {self.done} of {self.total}"
        return f"{self.step}: {_of(self.done, self.total)}" if self.total else self.step

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"doing": self.doing.value, "done": self.done, "total": self.total}

    @classmethod
    def from_dict(cls, data: Any) -> Activity | None:
        """Read what `to_dict` wrote; anything else is None."""
        if not isinstance(data, dict):
            return None
        done, total = data.get("done", 0), data.get("total", 0)
        if type(done) is not int or type(total) is not int or not 0 <= done <= total <= _LARGEST:
            return None
        try:
            return cls(Doing(data.get("doing")), done, total)
        except ValueError:
            return None


def _of(done: int, total: int) -> str:
    """1.2 of 3.4 GiB: both in the unit of the larger."""
    power = max(0, (total.bit_length() - 1) // 10)
    digits = 1 if power else 0
    size = 1024**power
    return f"{done / size:.{digits}f} of {total / size:.{digits}f} {_UNITS[power]}"
