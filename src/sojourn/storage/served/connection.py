"""One connection to the server, as long as it lasts: calls of many threads on one stream."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from sojourn.core.errors import Conflict, IntegrityError, Transient
from sojourn.storage.served.calls import Answer, Call, Lost
from sojourn.storage.served.frames import PIECE, PREAMBLE, BrokenFrame, Frame, Kind, Parser
from sojourn.storage.served.line import Line
from sojourn.storage.served.messages import text_to
from sojourn.storage.served.requests import pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.storage.objectinfo import Buffer

__all__ = ["Connection", "Stream"]

_PING_EVERY = 5.0  # seconds
_DEAD_AFTER = 30.0  # seconds without a sign of life
_JOINED_WITHIN = 5.0
_SHOWN = 200  # bytes of what is no answer
_FAMILY = PREAMBLE.partition(b"/")[0] + b"/"


class Stream(Protocol):
    """Bytes both ways. Reading and writing are done by different threads."""

    def write(self, data: bytes, /) -> object:
        """Send all of it."""

    def read(self) -> bytes:
        """What has come, at least a byte; nothing at the end."""

    def close(self) -> None:
        """End it, also for a thread that reads or writes. More than once is no error."""


class Connection:
    """Greets the server when it is made. When it is lost, so are the calls under way."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._line = Line(stream.write)
        self._parser = Parser()
        self._calls: dict[int, Call] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._over: Lost | None = None
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self.useful = False  # whether any call was answered
        self._threads: list[threading.Thread] = []
        # Not by the thread that pings: a line that is stuck may keep that one.
        self._run(self._watch)
        try:
            rest = self._greet()
        except BaseException:
            self.close()
            raise
        self._run(self._ping)
        self._run(lambda: self._read(rest))

    def _run(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="sojourn-served", daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def lost(self) -> bool:
        """Whether it is of no more use."""
        return self._over is not None

    def start(self, said: dict[str, Any], most: int) -> Call:
        """Begin a call without a body, to be waited for later; raises Lost."""
        return self._begin(said, most)[1]

    def call(self, said: dict[str, Any], body: Buffer | None, patience: float, most: int) -> Answer:
        """Make a call and wait for its answer; raises the store's errors, and Lost.

        `patience`: seconds for which nothing of it may move. `most`: bytes of the answer's body.
        """
        id, call = self._begin(said, most)  # noqa: A001
        if body is not None:
            self._send_body(id, call, body)
        return self.finish(call, patience)

    def finish(self, call: Call, patience: float) -> Answer:
        """Wait for the answer to a call that was begun."""
        answer = call.wait(patience)
        if answer is None:
            raise Transient(f"The store did not answer for {patience:.0f} seconds")
        return answer

    def close(self) -> None:
        """End it, and its threads."""
        self._lose(Lost("closed"))
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOINED_WITHIN)

    def _begin(self, said: dict[str, Any], most: int) -> tuple[int, Call]:
        text = text_to(said)
        if len(text) > PIECE:
            raise IntegrityError("a request to the store is too long")
        call = Call(most)
        with self._lock:
            if self._over:
                raise Lost(str(self._over))
            id = next(self._ids)  # noqa: A001
            self._calls[id] = call
        self._send(Kind.REQUEST, id, text)
        return id, call

    def _send_body(self, id: int, call: Call, body: Buffer) -> None:
        for piece in pieces(body):
            if call.done:  # refused already
                self._send(Kind.CANCEL, id)
                return
            self._send(Kind.DATA, id, piece)
            call.moved = time.monotonic()

    def _send(self, kind: int, id: int, body: Buffer = b"") -> None:
        try:
            if self._over:
                raise Lost(str(self._over))
            self._line.send(kind, id, body)
        except Lost:
            raise
        except Exception as error:
            lost = Lost(_told(error))
            self._lose(lost)
            raise lost from error

    def _greet(self) -> bytes:
        self._stream.write(PREAMBLE)
        said = b""
        while len(said) < len(PREAMBLE) and (more := self._stream.read()):
            said += more
            if not said.startswith(_FAMILY[: len(said)]):
                break
        if said.startswith(PREAMBLE):
            return said[len(PREAMBLE) :]
        if self._over:
            raise Transient(f"The store's server did not answer: {self._over}")
        if said.startswith(_FAMILY) and b"\n" in said:
            raise Conflict(
                f"The store's server speaks {said.splitlines()[0].decode(errors='replace')!r}, "
                f"and this version of sojourn speaks {PREAMBLE.decode().strip()!r}",
                hint="Use the version of sojourn that created the task.",
            )
        text = said[:_SHOWN].decode(errors="replace").strip()
        raise Transient(f"The store's server did not start: {text or 'it said nothing'}")

    def _read(self, data: bytes) -> None:
        """Runs in a thread of its own."""
        try:
            while True:
                for frame in self._parser.feed(data):
                    self._take(frame)
                data = self._stream.read()
                self._heard = time.monotonic()
                if not data:
                    raise Lost("the stream ended")
        except Lost as error:
            self._lose(error)
        except BrokenFrame as error:
            self._lose(Lost(str(error)))
        except Exception as error:
            self._lose(Lost(_told(error)))

    def _take(self, frame: Frame) -> None:
        with self._lock:
            call = self._calls.get(frame.id)
        if call and call.take(frame):
            self.useful = True
            with self._lock:
                self._calls.pop(frame.id, None)

    def _watch(self) -> None:
        """Runs in a thread of its own: a server sends something all the time."""
        while not self._ended.wait(_PING_EVERY):
            if time.monotonic() - self._heard > _DEAD_AFTER:
                self._lose(Lost(f"nothing heard for {_DEAD_AFTER:.0f} seconds"))

    def _ping(self) -> None:
        """Runs in a thread of its own: a server that hears nothing ends."""
        while not self._ended.wait(_PING_EVERY):
            with suppress(Lost):
                if self._line.idle():
                    self._send(Kind.ALIVE, 0)

    def _lose(self, why: Lost) -> None:
        with self._lock:
            if self._over:
                return
            self._over = why
            calls = list(self._calls.values())
            self._calls.clear()
        self._ended.set()
        for call in calls:
            call.lose(why)
        with suppress(Exception):
            self._stream.close()


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
