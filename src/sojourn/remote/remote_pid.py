"""A command on a machine that tells its number there, so that it can be sent signals."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.interfaces import RemoteProcess
    from sojourn.remote.exit_status import Trailer

__all__ = ["Numbered"]

_LONGEST = 64  # bytes of a number
_NUMBERED_WITHIN = 5.0  # seconds, for a process to tell its number


class Numbered:
    """A process that tells its number first, on its standard error, and how it ended last."""

    def __init__(
        self, started: RemoteProcess, trailer: Trailer, kill: Callable[[str], None]
    ) -> None:
        """`kill` runs a command such as `kill -15 42` on the machine, and waits for it."""
        self._started = started
        self._trailer = trailer
        self._kill = kill
        self._first = b""
        self._lock = threading.Lock()
        self._pid = ""
        self._numbered = threading.Event()
        self._early: list[int] = []  # signals from before its number was known
        self._ended = False

    def write(self, data: bytes) -> None:
        self._started.write(data)

    def close_input(self) -> None:
        self._started.close_input()

    def output(self) -> Iterator[tuple[int, bytes]]:
        for stream, data in self._all():
            rest = self._without_number(data) if stream == 2 and not self._pid else data
            if rest:
                yield stream, rest
        self._ended = True

    def _all(self) -> Iterator[tuple[int, bytes]]:
        for stream, data in self._started.output():
            yield stream, self._trailer.rest_of(stream, data)
            if self._trailer.complete:
                self._started.close()
                return
        yield from self._trailer.kept()

    def _without_number(self, data: bytes) -> bytes:
        self._first += data
        pid, newline, rest = self._first.partition(b"\n")
        if len(pid) > _LONGEST:  # it is no number, and all of it is output
            pid, newline, rest = b"", b"\n", self._first
        if newline:
            with self._lock:
                self._pid = pid.decode("ascii", "replace") or "-"
                early, self._early = self._early, []
            self._numbered.set()
            for number in early:
                self.signal(number)
        return rest

    def resize(self, rows: int, columns: int) -> None:
        """It has no terminal."""

    def signal(self, number: int) -> None:
        with self._lock:
            if not self._pid:  # its number and its output come on different ways
                self._early.append(number)
                return
        if not self._pid.isdecimal() or self._ended:
            return
        with suppress(SojournError):
            self._kill(f"kill -{int(number)} {self._pid}")

    def wait(self) -> int:
        if not self._ended:
            for _ in self.output():
                pass
        code = self._trailer.code
        return self._started.wait() if code is None else code

    def close(self) -> None:
        """The machine would not end it by itself."""
        if not self._ended:
            if not self._numbered.is_set():
                threading.Thread(target=self._read_number, daemon=True).start()
                self._numbered.wait(_NUMBERED_WITHIN)
            self.signal(9)
        self._started.close()

    def _read_number(self) -> None:
        """Nobody reads the output any more, and it is still to come."""
        with suppress(SojournError):
            for stream, data in self._started.output():
                if stream == 2 and not self._pid:
                    self._without_number(data)
                if self._pid:
                    return
