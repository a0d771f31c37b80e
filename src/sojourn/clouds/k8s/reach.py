"""The way into a machine: through the API server, into the script's container."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.neighbour import INSIDE
from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.trailer import Trailer
from sojourn.clouds.k8s.websocket import execute, forward
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.clouds.k8s.api import Api
    from sojourn.clouds.k8s.websocket import ExecProcess
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Connection, RemoteProcess, Terminal

__all__ = ["KubernetesReach"]

# The container's own environment is the image's; the script's is in a file.
_INSIDE = f". {places.FOLDER}/run/{INSIDE}"
# The size that is sent comes a moment after the start.
_ON_TERMINAL = "stty rows {rows} cols {columns} 2>/dev/null; export TERM={term}; {inside}"
_NUMBERED_WITHIN = 5.0  # seconds, for a process to tell its number


class KubernetesReach:
    """The script's container of a pod."""

    def __init__(self, api: Api, machine: str) -> None:
        self._api = api
        self._machine = machine

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        if terminal is None:
            trailer = Trailer()
            started = self._start(trailer.around(_INSIDE), command)
            return _Process(self._api, self._machine, started, trailer)
        term = terminal.name if terminal.name.replace("-", "").isalnum() else "xterm"
        text = _ON_TERMINAL.format(
            rows=terminal.rows, columns=terminal.columns, term=term, inside=_INSIDE
        )
        started = self._start(text, command, tty=True)
        started.resize(terminal.rows, terminal.columns)
        return started

    def _start(self, text: str, command: Sequence[str], *, tty: bool = False) -> ExecProcess:
        shell = ["/bin/sh", "-c", text, "sh", *command]
        return execute(self._api, self._machine, names.SCRIPT, shell, tty=tty)

    def connect(self, ctx: Context, port: int) -> Connection:
        return forward(self._api, self._machine, port)


class _Process:
    """A process that tells its number first, on its standard error, and how it ended last."""

    def __init__(self, api: Api, machine: str, started: ExecProcess, trailer: Trailer) -> None:
        self._api = api
        self._machine = machine
        self._started = started
        self._trailer = trailer
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
        if newline:
            with self._lock:
                self._pid = pid.decode("ascii", "replace")
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
            kill = f"kill -{int(number)} {self._pid}"
            sent = execute(self._api, self._machine, names.SCRIPT, ["/bin/sh", "-c", kill])
            for _ in sent.output():
                pass
            sent.close()

    def wait(self) -> int:
        for _ in self.output():
            pass
        code = self._trailer.code
        return self._started.wait() if code is None else code

    def close(self) -> None:
        """The container would not end it by itself."""
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
