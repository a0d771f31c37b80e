"""A machine that was booted: what can be done to it and seen of it from outside.

How it is made does not belong here, see `host` and `launcher`.
"""

from __future__ import annotations

import errno
import os
import select
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.simcloud.machines import cgroups, kernel
from tests.simcloud.machines.plan import CONSOLE, DENIED, POWER_BUTTON, WRITTEN, hear
from tests.simcloud.machines.spec import End, MachineError, MachineSpec, Process, Serve
from tests.support.waiting import patience

# The status of the first process, whose signal is how the kernel tells what a machine asked for
_ENDS = {
    int(signal.SIGINT): End.POWERED_OFF,
    int(signal.SIGHUP): End.RESTARTED,
    int(signal.SIGKILL): End.KILLED,
}
_ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
_GONE_WITHIN = 30.0
_CONNECTED_WITHIN = 10.0


@dataclass(frozen=True)
class Launched:
    """What the host holds of a machine that was made."""

    launcher: subprocess.Popen[bytes]
    control: socket.socket
    pid1: int
    pidfd: int
    card: int | None  # the other end of it
    listening: Sequence[socket.socket]
    folder: Path
    cgroup: Path


class RunningMachine:
    """All of it may be called from any thread, and console and files also after its end."""

    def __init__(self, spec: MachineSpec, address: str, launched: Launched) -> None:
        self.id = spec.id
        self.address = address
        self.pid1 = launched.pid1
        self.end: End | None = None
        self.spec = spec
        self._launched = launched
        self._namespace = _pid_namespace(launched.pid1)
        self._gone = threading.Event()
        self._on_end = spec.on_end
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._keeper = threading.Thread(target=self._keep, name=f"machine {spec.id}", daemon=True)
        if spec.cable and launched.card is not None:
            spec.cable.switch.plug(launched.card, spec.cable)
        self._keeper.start()

    @property
    def alive(self) -> bool:
        """Whether anything of it may still run."""
        return not self._gone.is_set()

    def cut_power(self) -> None:
        """Let none of its processes do anything more, and do not wait."""
        cgroups.kill(self._launched.cgroup)
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """Take it away without notice; it has gone when this returns."""
        self.cut_power()
        if not self.wait(patience(_GONE_WITHIN)):
            raise MachineError(f"machine {self.id} was killed and did not go")

    def power_button(self) -> None:
        """Ask it to shut down in order, and do not wait."""
        self._signal(POWER_BUTTON)

    def wait(self, timeout: float) -> bool:
        """Whether it has gone within this time."""
        return self._gone.wait(timeout)

    @property
    def folder(self) -> Path:
        """Where the host keeps what there is of it."""
        return self._launched.folder

    def console(self) -> str:
        """What user-data and the system have printed up to now."""
        with suppress(FileNotFoundError):
            data = (self._launched.folder / CONSOLE).read_bytes()
            return data.decode(errors="replace").replace("\r\n", "\n")
        return ""

    def run(
        self, *command: str, input: str = "", check: bool = True, timeout: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root, in the folder /, with an environment as after a log-in."""
        if not self.alive:
            raise MachineError(f"machine {self.id} has ended")
        denied = ",".join(f"-{capability}" for capability in DENIED)
        done = subprocess.run(
            [
                *("nsenter", f"--target={self.pid1}", "--mount", "--uts", "--ipc", "--net"),
                *("--pid", "--cgroup", "--", "setpriv", f"--bounding-set={denied}", "--"),
                *command,
            ],
            input=input,
            capture_output=True,
            text=True,
            env=_ENVIRONMENT,
            timeout=patience(timeout),
        )
        if check and done.returncode != 0:
            said = f"{done.stdout}{done.stderr}".strip()
            raise MachineError(f"{command} ended with {done.returncode} in {self.id}: {said}")
        return done

    def connect(self, port: int) -> socket.socket:
        """A connection to this port, as from outside: to what does not listen on loopback only."""
        with self._lock:
            if self.end is not None:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "the machine has ended")
            pidfd = os.dup(self._launched.pidfd)
        with ThreadPoolExecutor(1) as apart:  # its thread stays in the network, and ends
            return apart.submit(_connect, pidfd, self.address, port).result()

    def processes(self) -> list[Process]:
        """All of its processes. One that is just ending has no arguments and no environment."""
        pids = set(cgroups.members(self._launched.cgroup))
        for entry in os.listdir("/proc"):
            if entry.isdigit() and _pid_namespace(int(entry)) == self._namespace:
                pids.add(int(entry))
        return [_process(pid) for pid in sorted(pids)]

    def files(self) -> Iterator[Path]:
        """All files that were written in it: on its disk, in /run and in /dev/shm."""
        for folder, _, names in os.walk(self._launched.folder / WRITTEN):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path

    def abandon(self) -> None:
        """Kill it and tell nobody; `settle` waits for it."""
        self._on_end = None
        self.cut_power()

    def settle(self) -> None:
        """Wait until it has gone, and for the threads of this process that served it."""
        self.kill()
        with self._lock:
            threads = [self._keeper, *self._clients.values()]
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(patience(_GONE_WITHIN))

    def _signal(self, number: int) -> None:
        with self._lock:
            if self.end is None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._launched.pidfd, number)

    def _keep(self) -> None:
        """Accept its clients until it ends, clear up, and tell."""
        status = self._accept_until_end()
        launched = self._launched
        launched.launcher.wait()
        # If the launcher was killed, the kernel kills the machine, but nobody told us when.
        ended = select.poll()
        ended.register(launched.pidfd, select.POLLIN)
        ended.poll()
        with self._lock:
            self.end = _ENDS.get(status, End.CRASHED)
            os.close(launched.pidfd)
            for client in self._clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        if self.spec.cable and launched.card is not None:
            self.spec.cable.switch.unplug(launched.card)
        for each in (launched.control, *launched.listening):
            each.close()
        cgroups.remove(launched.cgroup)
        self._gone.set()
        on_end = self._on_end
        if on_end:
            on_end(self)

    def _accept_until_end(self) -> int:
        """How the first process ended, as the kernel puts it."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._launched.control, selectors.EVENT_READ)
            for listening, endpoint in zip(
                self._launched.listening, self.spec.endpoints, strict=True
            ):
                selector.register(listening, selectors.EVENT_READ, endpoint.serve)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        message, _ = hear(self._launched.control)
                        return int(message.get("ended", signal.SIGKILL))
                    assert isinstance(key.fileobj, socket.socket)
                    with suppress(OSError):
                        self._welcome(key.fileobj.accept()[0], key.data)

    def _welcome(self, client: socket.socket, serve: Serve) -> None:
        thread = threading.Thread(target=self._serve, args=(client, serve), daemon=True)
        with self._lock:
            self._clients[client] = thread
        thread.start()

    def _serve(self, client: socket.socket, serve: Serve) -> None:
        try:
            with suppress(OSError):
                serve(client)
        finally:
            with self._lock:
                del self._clients[client]
                client.close()


def _connect(pidfd: int, address: str, port: int) -> socket.socket:
    try:
        kernel.set_namespace(pidfd, kernel.CLONE_NEWNET)
    except ProcessLookupError as error:  # it is just ending
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(error)) from None
    finally:
        os.close(pidfd)
    connection = socket.create_connection((address, port), _CONNECTED_WITHIN)
    connection.settimeout(None)
    return connection


def _pid_namespace(pid: int) -> int:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    return 0


def _process(pid: int) -> Process:
    session = _session(pid)  # first: of one that goes meanwhile, nothing else is known then
    argv = tuple(_strings(pid, "cmdline"))
    environ = (pair.partition("=") for pair in _strings(pid, "environ"))
    return Process(pid, argv, {name: value for name, _, value in environ}, session)


def _session(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return 0


def _strings(pid: int, name: str) -> list[str]:
    with suppress(OSError):
        text = Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
        return text.removesuffix("\0").split("\0") if text else []
    return []
