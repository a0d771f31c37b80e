"""The way into a machine of this computer: a process beside the script's."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.environment import inherited, script_environment
from sojourn.core.errors import NotFound, SojournError, Transient
from sojourn.host.exec_sessions import add_guest, kill_session
from sojourn.host.orphans import environment
from sojourn.remote.subprocesses import start
from sojourn.storage.data import StoreData, load_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sojourn.clouds.local.scaler import LocalScaler
    from sojourn.core.context import Context
    from sojourn.core.interfaces import RemoteProcess, Terminal
    from sojourn.remote.subprocesses import Piped, Shown
    from sojourn.storage.store import Store

__all__ = ["LocalReach"]

_CONNECT_WITHIN = 10.0  # seconds
_AT_ONCE = 1 << 16  # bytes


class LocalReach:
    """Into one machine."""

    def __init__(
        self, scaler: LocalScaler, store: Callable[[], Store], machine: str, folder: Path
    ) -> None:
        self._scaler = scaler
        self._store = store
        self._machine = machine
        self._folder = folder

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        agent = self._scaler.agent(self._machine)
        if not (self._folder / "script").exists():
            raise Transient(
                f"Machine {self._machine} is still starting", hint="Try again in a moment."
            )
        variables = self._variables(ctx, agent)
        process = self._start(variables, command, terminal)
        try:
            add_guest(self._folder, process.pid)
            self._scaler.agent(self._machine)  # else nobody may be left to end it
        except (OSError, SojournError) as error:
            process.close()
            raise self._gone() from error
        return process

    def connect(self, ctx: Context, port: int) -> LocalConnection:
        self._scaler.agent(self._machine)
        try:
            opened = socket.create_connection(("127.0.0.1", port), _CONNECT_WITHIN)
        except OSError as error:
            raise Transient(
                f"Could not connect to port {port} of machine {self._machine}: "
                f"{error.strerror or error}",
                hint="Check that the script listens on this port.",
            ) from error
        opened.settimeout(None)
        return LocalConnection(opened)

    def _variables(self, ctx: Context, agent: int) -> dict[str, str]:
        store = self._store()
        data = StoreData(lambda: store, near=True)
        task = data.load(ctx)
        for record in data.records(ctx, task.parallelism):
            if record.machine == self._machine:
                around = environment(agent)
                return inherited(os.environ if around is None else around) | script_environment(
                    load_environment(store),
                    task,
                    rank=record.rank,
                    attempt=record.attempt,
                    machine=self._machine,
                )
        raise self._gone()

    def _gone(self) -> NotFound:
        return NotFound(f"Machine {self._machine} no longer runs the script")

    def _start(
        self, variables: dict[str, str], command: Sequence[str], terminal: Terminal | None
    ) -> Piped | Shown:
        try:
            return start(
                command,
                terminal,
                kill_session,
                variables=variables,
                folder=self._folder / "workdir",
            )
        except OSError as error:
            if not self._folder.exists():
                raise self._gone() from error
            raise SojournError(
                f"Could not run a command on machine {self._machine}: {error.strerror or error}"
            ) from error


class LocalConnection:
    """A connection within this computer."""

    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def read(self) -> bytes:
        return self._opened.recv(_AT_ONCE)

    def write(self, data: bytes) -> None:
        self._opened.sendall(data)

    def close_write(self) -> None:
        with suppress(OSError):  # the other side has ended it
            self._opened.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with suppress(OSError):
            self._opened.shutdown(socket.SHUT_RDWR)  # whoever reads just now gets to know
        self._opened.close()
