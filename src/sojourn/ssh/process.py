"""Processes of ssh that stand for commands and connections on a machine."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.errors import SojournError
    from sojourn.core.interfaces import RemoteProcess
    from sojourn.ssh.client import Client

__all__ = ["SshConnection", "SshProcess", "end"]

_CONNECTED = b"+"  # what the relay says first
_REFUSED = 255  # ssh's own exit code
_KEPT = 64 << 10  # bytes of what it says


def end(pid: int) -> None:
    """ssh and what it started, such as a ProxyCommand."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class SshProcess:
    """A process of ssh. `refused` makes the error of one that does not come through.

    The command tells its number first, unless it is `shown`, on a terminal: there, all is output.
    It holds on to the client, whose files ssh may still have to read.
    """

    def __init__(
        self,
        started: RemoteProcess,
        client: Client,
        refused: Callable[[str], SojournError],
        *,
        shown: bool = False,
    ) -> None:
        self._started = started
        self._client = client
        self._refused = refused
        self._reached = shown
        self._said = b""

    def output(self) -> Iterator[tuple[int, bytes]]:
        for stream, data in self._started.output():
            if stream == 2 and not self._reached:
                self._said = (self._said + data)[:_KEPT]
                first, newline, _ = self._said.partition(b"\n")
                if not newline or not first.isdigit():  # ssh itself speaks
                    continue
                self._reached, data = True, self._said
            yield stream, data
        if not self._reached and self._started.wait() == _REFUSED:
            raise self._refused(" ".join(self._said.decode("utf-8", "replace").split()))
        if not self._reached:
            yield 2, self._said

    def write(self, data: bytes) -> None:
        self._started.write(data)

    def close_input(self) -> None:
        self._started.close_input()

    def resize(self, rows: int, columns: int) -> None:
        self._started.resize(rows, columns)

    def signal(self, number: int) -> None:
        self._started.signal(number)

    def wait(self) -> int:
        return self._started.wait()

    def close(self) -> None:
        self._started.close()


class SshConnection:
    """A connection by way of a small program on the machine, which says if it has one."""

    def __init__(self, started: RemoteProcess, client: Client, machine: str, port: int) -> None:
        self._started = started
        self._client = client
        self._output = started.output()
        self._rest = self._first(machine, port)

    def _first(self, machine: str, port: int) -> bytes:
        said = b""
        for stream, data in self._output:
            if stream == 1:
                return data.removeprefix(_CONNECTED)
            said = (said + data)[-_KEPT:]
        self._started.close()
        why = " ".join(said.decode("utf-8", "replace").split()) or "the machine is gone"
        raise Transient(
            f"Could not connect to port {port} of machine {machine}: {why}",
            hint="Check that the script listens on this port.",
        )

    def read(self) -> bytes:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        for stream, data in self._output:
            if stream == 1:
                return data
        return b""

    def write(self, data: bytes) -> None:
        self._started.write(data)

    def close_write(self) -> None:
        self._started.close_input()

    def close(self) -> None:
        self._started.close()
