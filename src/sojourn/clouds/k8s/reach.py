"""The way into a machine: through the API server, into the script's container."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.neighbour import INSIDE
from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.websocket import execute, forward
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.clouds.k8s.api import Api
    from sojourn.clouds.k8s.websocket import ExecProcess
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Connection, RemoteProcess, Terminal

__all__ = ["KubernetesReach"]

# The container's own environment is the image's; the script's is in a file. The process tells its
# number first, as the API server can hand on no signals.
_RUN = 'echo "$$" >&2; . {folder}/run/{inside}'
# The size that is sent comes a moment after the start.
_ON_TERMINAL = (
    "stty rows {rows} cols {columns} 2>/dev/null; export TERM={term}; . {folder}/run/{inside}"
)


class KubernetesReach:
    """The script's container of a pod."""

    def __init__(self, api: Api, machine: str) -> None:
        self._api = api
        self._machine = machine

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        text = _ON_TERMINAL if terminal else _RUN
        term = terminal.name if terminal and terminal.name.replace("-", "").isalnum() else "xterm"
        size = (terminal.rows, terminal.columns) if terminal else (0, 0)
        script = text.format(
            folder=places.FOLDER, inside=INSIDE, term=term, rows=size[0], columns=size[1]
        )
        started = execute(
            self._api,
            self._machine,
            names.SCRIPT,
            ["/bin/sh", "-c", script, "sh", *command],
            tty=terminal is not None,
        )
        if terminal:
            started.resize(terminal.rows, terminal.columns)
            return started
        return _Numbered(self._api, self._machine, started)

    def connect(self, ctx: Context, port: int) -> Connection:
        return forward(self._api, self._machine, port)


class _Numbered:
    """A process whose number comes first on its standard error, so that it can be signalled."""

    def __init__(self, api: Api, machine: str, started: ExecProcess) -> None:
        self._api = api
        self._machine = machine
        self._started = started
        self._pid = ""
        self._ended = False

    def write(self, data: bytes) -> None:
        self._started.write(data)

    def close_input(self) -> None:
        self._started.close_input()

    def output(self) -> Iterator[tuple[int, bytes]]:
        first = b""
        for stream, data in self._started.output():
            if stream == 2 and not self._pid:
                first += data
                number, newline, rest = first.partition(b"\n")
                if not newline:
                    continue
                self._pid = number.decode("ascii", "replace")
                if not rest:
                    continue
                yield 2, rest
            else:
                yield stream, data
        self._ended = True

    def resize(self, rows: int, columns: int) -> None:
        """It has no terminal."""

    def signal(self, number: int) -> None:
        if not self._pid.isdecimal() or self._ended:
            return
        with suppress(SojournError):
            kill = f"kill -{int(number)} {self._pid}"
            sent = execute(self._api, self._machine, names.SCRIPT, ["/bin/sh", "-c", kill])
            for _ in sent.output():
                pass
            sent.close()

    def wait(self) -> int:
        return self._started.wait()

    def close(self) -> None:
        """The container would not end it by itself."""
        if not self._ended:
            self.signal(9)
        self._started.close()
