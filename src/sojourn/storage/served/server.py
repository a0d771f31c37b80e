"""The server: one thread reads, a few workers answer. It ends when nobody is there any more."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import IntegrityError
from sojourn.storage.files import write_all
from sojourn.storage.served.frames import PREAMBLE, BrokenFrame, Frame, Kind, Parser
from sojourn.storage.served.line import Line
from sojourn.storage.served.messages import error_to, text_from, text_to
from sojourn.storage.served.requests import BULKY, CALLS
from sojourn.storage.served.signs import ASKED, CONNECTED, Signs
from sojourn.storage.served.uploads import Upload, Uploads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sojourn.storage.folder import FolderStore
    from sojourn.storage.objectinfo import Buffer

__all__ = ["serve"]

_READ_AT_ONCE = 1 << 20
_QUICK, _BULKY = 4, 12  # workers; many large answers leave some for small ones
_ALIVE_EVERY = 5.0  # seconds
_FINISH_WITHIN = 5.0  # seconds for what is under way at the end


def serve(
    store: FolderStore,
    input: int,
    output: int,
    *,
    signs: Path | None = None,
    idle: float = 30.0,
) -> None:
    """Answer calls that come in by one descriptor, until it ends or is silent for `idle` seconds.

    `signs` is a folder for those who want to know whether somebody is there, see `signs`.
    """
    shown = Signs(signs)
    reader = _Input(input, idle, shown)
    said = reader.read_exactly(len(PREAMBLE))
    write_all(output, PREAMBLE)
    if said != PREAMBLE:
        return  # the client tells what is wrong
    server = _Server(store, Line(lambda data: write_all(output, data)), shown)
    try:
        server.run(reader)
    except (BrokenFrame, BrokenPipeError, ValueError):
        return  # the client calls again, on another stream
    finally:
        server.end()


class _Input:
    """Bytes, as long as somebody is there."""

    def __init__(self, descriptor: int, idle: float, signs: Signs) -> None:
        self._descriptor = descriptor
        self._idle = idle
        self._signs = signs

    def read(self) -> bytes:
        """What has come; nothing at the end, and after a long silence."""
        ready, _, _ = select.select([self._descriptor], [], [], self._idle)
        data = os.read(self._descriptor, _READ_AT_ONCE) if ready else b""
        if data:
            self._signs.touch(CONNECTED)
        return data

    def read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self._descriptor], [], [], self._idle)
            piece = os.read(self._descriptor, size - len(data)) if ready else b""
            if not piece:
                break
            data += piece
        self._signs.touch(CONNECTED)
        self._signs.touch(ASKED)
        return data


class _Server:
    def __init__(self, store: FolderStore, line: Line, signs: Signs) -> None:
        self._store = store
        self._line = line
        self._signs = signs
        self._uploads = Uploads(store)
        self._quick = _Pool("quick", _QUICK)
        self._bulky = _Pool("bulky", _BULKY)
        self._over = threading.Event()

    def run(self, reader: _Input) -> None:
        parser = Parser()
        threading.Thread(target=self._live, name="sojourn-alive", daemon=True).start()
        while data := reader.read():
            for frame in parser.feed(data):
                self._take(frame)

    def end(self) -> None:
        self._over.set()
        self._uploads.abandon()
        give_up = time.monotonic() + _FINISH_WITHIN
        self._quick.end(give_up)
        self._bulky.end(give_up)

    def _live(self) -> None:
        """So that the client need not guess whether a slow disk is a broken line."""
        while not self._over.wait(_ALIVE_EVERY):
            with suppress(OSError):
                if self._line.idle():
                    self._line.send(Kind.ALIVE, 0)

    def _take(self, frame: Frame) -> None:
        if frame.kind != Kind.ALIVE:
            self._signs.touch(ASKED)
        try:
            if frame.kind == Kind.REQUEST:
                self._request(frame.id, text_from(frame.body))
            elif frame.kind == Kind.DATA:
                self._finish(frame.id, self._uploads.feed(frame.id, frame.body))
            elif frame.kind == Kind.CANCEL:
                self._uploads.cancel(frame.id)
        except BrokenPipeError:
            raise
        except Exception as error:
            self._fail(frame.id, error)

    def _request(self, id: int, said: dict[str, Any]) -> None:
        name = said.get("call")
        if name in ("put", "put_new"):
            path, size = str(said["path"]), int(said["size"])
            self._finish(id, self._uploads.begin(id, path, size, new=name == "put_new"))
            return
        call = CALLS.get(str(name))
        if call is None:
            raise IntegrityError(f"unknown call {name!r}")
        pool = self._bulky if name in BULKY else self._quick
        reply = _Reply(self._line, id, self._signs)
        pool.submit(lambda: self._answered(id, lambda: call(self._store, said, reply)))

    def _finish(self, id: int, upload: Upload | None) -> None:
        if upload:
            self._quick.submit(lambda: self._answered(id, upload.finish))

    def _answered(self, id: int, call: Callable[[], Any]) -> None:
        with suppress(BrokenPipeError):  # the reader notices, too
            try:
                result = call()
            except Exception as error:
                self._fail(id, error)
            else:
                self._line.send(Kind.DONE, id, text_to({"result": result}))

    def _fail(self, id: int, error: Exception) -> None:
        self._line.send(Kind.FAILED, id, error_to(error))


class _Reply:
    def __init__(self, line: Line, id: int, signs: Signs) -> None:
        self._line = line
        self._id = id
        self._signs = signs

    def begin(self, **sizes: Any) -> None:
        self._line.send(Kind.BEGIN, self._id, text_to(sizes))

    def data(self, piece: Buffer) -> None:
        self._signs.touch(ASKED)
        self._line.send(Kind.DATA, self._id, piece)


class _Pool:
    """Workers, started as they are needed."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], None]) -> None:
        self._todo.put(work)
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self, give_up: float) -> None:
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join(max(0.0, give_up - time.monotonic()))

    def _run(self) -> None:
        while (work := self._todo.get()) is not None:
            work()
