"""The way into a machine: OpenSSH, with the task's key and the key that the machine published."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.inside import INSIDE
from sojourn.clouds.vm.paths import HOST_KEYS
from sojourn.core.errors import IntegrityError, NotFound, Transient
from sojourn.core.images import container_image
from sojourn.remote.exit_status import Trailer
from sojourn.remote.remote_pid import Numbered
from sojourn.remote.subprocesses import start
from sojourn.ssh.client import Access, Client
from sojourn.ssh.process import SshConnection, SshProcess, end
from sojourn.storage.data import load_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import RemoteProcess, Scaler, Terminal
    from sojourn.core.task import Task
    from sojourn.storage.store import Store

__all__ = ["ON_MACHINE", "SshReach"]

_FOLDER = "/opt/sojourn"
ON_MACHINE = f"PYTHONPATH={_FOLDER}/lib exec {_FOLDER}/python -m sojourn.clouds.vm.on_machine"
_INSIDE = f'{ON_MACHINE}.beside {_FOLDER}/disk "$@"'
_ON_TERMINAL = f"export TERM={{term}}; {_INSIDE}"
# In the script's container there is only a shell; this passes a command on to it.
_WITHIN = ("/bin/sh", "-c", f'{ON_MACHINE}.within {_FOLDER}/disk "$@"', "sh")
_IN_CONTAINER = f". {_FOLDER}/disk/run/{INSIDE}"
# The size that is sent comes a moment after the start.
_SIZED = "stty rows {rows} cols {columns} 2>/dev/null; export TERM={term}; "
_RELAY = f"{ON_MACHINE}.relay {{port}}"
_KILLED_WITHIN = 20.0  # seconds
_LONGEST = 16 << 10  # bytes of host keys
_KEY = re.compile(r"[a-z0-9@.-]+ [A-Za-z0-9+/=]+")


class SshReach:
    """Into one machine. `user_of`: whom the image of a task lets in."""

    def __init__(
        self,
        scaler: Scaler,
        open_store: Callable[[], Store],
        machine: str,
        user_of: Callable[[Task], str],
    ) -> None:
        self._scaler = scaler
        self._open_store = open_store
        self._machine = machine
        self._user_of = user_of
        self._client: Client | None = None
        self._contained = False  # the script is in a container

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        client = self._connected(ctx)
        if terminal is None:
            trailer = Trailer()
            text = trailer.around(_IN_CONTAINER if self._contained else _INSIDE)
            started = self._start(client, self._shell(text, *command))
            return Numbered(SshProcess(started, client, self._refused), trailer, self._kill)
        term = terminal.name if terminal.name.replace("-", "").isalnum() else "xterm"
        text = _ON_TERMINAL.format(term=term)
        if self._contained:
            sized = _SIZED.format(rows=terminal.rows, columns=terminal.columns, term=term)
            text = sized + _IN_CONTAINER
        started = self._start(client, self._shell(text, *command), terminal)
        return SshProcess(started, client, self._refused, shown=True)

    def connect(self, ctx: Context, port: int) -> SshConnection:
        client = self._connected(ctx)
        started = self._start(client, ["/bin/sh", "-c", _RELAY.format(port=port)])
        return SshConnection(started, client, self._machine, port)

    def _shell(self, text: str, *arguments: str) -> list[str]:
        """What runs a shell's text where the script is."""
        return [*(_WITHIN if self._contained else ()), "/bin/sh", "-c", text, "sh", *arguments]

    def _start(
        self, client: Client, words: list[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        command = client.command(words, shown=terminal is not None)
        return start(command, terminal, end, variables=os.environ, folder=client.folder)

    def _kill(self, command: str) -> None:
        if self._client is None:
            return
        with suppress(subprocess.TimeoutExpired):  # the machine is gone, and the process with it
            subprocess.run(
                self._client.command(self._shell(command)),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_KILLED_WITHIN,
            )

    def _connected(self, ctx: Context) -> Client:
        if self._client is None:
            self._client = Client(self._access(ctx))
        return self._client

    def _access(self, ctx: Context) -> Access:
        fleet = self._scaler.fleet(ctx)
        found = [each for each in fleet.machines if each.id == self._machine] if fleet else []
        if not found:
            raise self._gone()
        if not found[0].address:
            raise Transient(
                f"Machine {self._machine} has no address yet", hint="Try again in a moment."
            )
        pair = self._scaler.keys(ctx)
        if pair is None:
            raise self._gone()
        alias = f"tpi-machine-{re.sub('[^A-Za-z0-9-]', '-', self._machine)}"
        store = self._open_store()
        task = load_task(store)
        self._contained = bool(container_image(task.image))
        user = self._user_of(task)
        return Access(alias, found[0].address, user, pair.private, self._host_keys(store))

    def _host_keys(self, store: Store) -> str:
        """As the machine told them; what is none is left out."""
        path = f"{HOST_KEYS}{self._machine}"
        published = store.head(path)
        if published is None:
            raise Transient(
                f"Machine {self._machine} has not published its SSH keys yet",
                hint="Try again in a moment. If this persists, the image has no OpenSSH server.",
            )
        if published.size > _LONGEST:
            raise IntegrityError(
                f"The SSH keys of machine {self._machine} have {published.size} bytes, which is "
                "too much for keys",
                hint="Something on the machine replaced them; stop and start the task.",
            )
        lines = bytes(store.get(path, most=_LONGEST)).decode("ascii", "replace").splitlines()
        return "\n".join(m[0] for line in lines if (m := _KEY.match(line)))

    def _gone(self) -> NotFound:
        return NotFound(f"Machine {self._machine} is gone")

    def _refused(self, why: str) -> Transient:
        return Transient(
            f"Could not connect to machine {self._machine}: {why or 'ssh failed'}",
            hint="Check that options.ssh_from lets this computer in, and that the machine still "
            "runs: `sojourn status`.",
        )
