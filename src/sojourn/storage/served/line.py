"""The way out: whose turn it is to send, how fast the line is, and whether to compress."""

from __future__ import annotations

import threading
import time
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.storage.served.frames import Kind, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.storage.objectinfo import Buffer

__all__ = ["Line"]

_SAMPLE = 8 << 10  # bytes that are compressed to see what it brings
_MEASURED = 16 << 10  # smaller ones tell more of the system than of the line
_WEIGHT = 0.1  # of the newest measurement
_AT_FIRST = 20e6  # bytes per second, until there are measurements
_PAUSE = 31  # pieces
_COSTS = 2.0  # times what compressing takes: somebody has to decompress it as well
_TOO_FAST = 200e6  # compressing cannot keep up with this


class Line:
    """Sends frames one by one. Small ones overtake pieces of bodies that wait."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._turn = threading.Condition()
        self._busy = False
        self._urgent = 0
        self._rate = _AT_FIRST
        self._pause = self._unasked = 0  # pieces without a sample

    def send(self, kind: int, id: int, body: Buffer = b"") -> None:
        """Send a frame; raises what the stream raises."""
        if kind == Kind.DATA:
            frame = encode(kind, id, body, packed=self._packed(body))
            with self._taken(urgent=False):
                self._send(frame)
        else:
            frame = encode(kind, id, body)
            with self._taken(urgent=True):
                self._send(frame)

    def idle(self) -> bool:
        """Whether nobody sends; who does needs no sign of life beside."""
        return not self._busy

    def _send(self, frame: bytes) -> None:
        start = time.monotonic()
        self._write(frame)
        if len(frame) >= _MEASURED:
            took = max(time.monotonic() - start, 1e-6)
            # Of times, not of rates: buffers take most pieces at once, and some wait for the line.
            self._rate = 1 / ((1 - _WEIGHT) / self._rate + _WEIGHT * took / len(frame))

    @contextmanager
    def _taken(self, *, urgent: bool) -> Iterator[None]:
        with self._turn:
            self._urgent += urgent
            while self._busy or (self._urgent and not urgent):
                self._turn.wait()
            self._urgent -= urgent
            self._busy = True
        try:
            yield
        finally:
            with self._turn:
                self._busy = False
                self._turn.notify_all()

    def _packed(self, body: Buffer) -> bytes | None:
        """The body compressed, if that is faster than sending it as it is."""
        if len(body) < _SAMPLE or self._rate > _TOO_FAST:
            return None
        if self._unasked:
            self._unasked -= 1  # by several threads, and not exactly
            return None
        start = time.perf_counter()
        saved = _SAMPLE - len(zlib.compress(memoryview(body)[:_SAMPLE], 1))
        if saved <= 0 or saved / self._rate < _COSTS * (time.perf_counter() - start):
            # Most bodies are like the last one, and samples cost as much as checksums.
            self._pause = min(_PAUSE, 2 * self._pause + 1)
            self._unasked = self._pause
            return None
        self._pause = 0
        packed = zlib.compress(body, 1)
        return packed if len(packed) < len(body) else None
