"""The road from the laptop to machines, for `ssh`: what the internet is to real ones.

A machine has a network of its own, which nothing leads into. So the road makes each connection in
there, and hands it to the `proxy` that `ssh` starts. Who has which address does not belong here.
"""

from __future__ import annotations

import errno
import os
import shlex
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.simcloud.machines import leftovers, proxy
from tests.simcloud.machines.running import RunningMachine

Find = Callable[[str], "RunningMachine | None"]
Allowed = Callable[[str, int], bool]
_LONGEST = 1024
_PATIENCE = 30.0  # with a client that says nothing
_CREDENTIALS = struct.Struct("3i")


def _anybody(address: str, port: int) -> bool:
    return True


class Road:
    """Leads to the machine that `find` has for an address; a context manager.

    Where no machine is, a connection is refused; if it is not `allowed`, as by a firewall, it fails
    as if it had timed out, but at once. A connection outlives the road, and ends with its machine.
    """

    def __init__(self, find: Find, allowed: Allowed = _anybody) -> None:
        self._find = find
        self._allowed = allowed
        self._name = f"{leftovers.new_name()}-road"
        self._lock = threading.Lock()
        self._clients: set[threading.Thread] = set()
        # In no folder, so that it cannot be left over, and its name is not too long
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(f"\0{self._name}")
        self._listening.listen()
        self._keeper = threading.Thread(target=self._accept, name=self._name, daemon=True)
        self._keeper.start()

    def __enter__(self) -> Road:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let nobody in any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._keeper.join()
        self._listening.close()
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            client.join()

    def config(self) -> str:
        """For a configuration of `ssh`: it leads to these machines, and nowhere else."""
        command = [sys.executable, "-ISB", str(Path(proxy.__file__).resolve()), self._name]
        quoted = shlex.join(command).replace("%", "%%")
        return f"Host *\n  ProxyCommand {quoted} %h %p\n  ProxyUseFdpass yes\n"

    def _accept(self) -> None:
        with suppress(OSError):  # it was shut down
            while True:
                client, _ = self._listening.accept()
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                with self._lock:
                    self._clients.add(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):  # it is gone
                client.settimeout(_PATIENCE)
                self._answer(client)
        finally:
            with self._lock:
                self._clients.discard(threading.current_thread())

    def _answer(self, client: socket.socket) -> None:
        if _user(client) != os.geteuid():
            return
        address, _, port = client.recv(_LONGEST).decode().partition(" ")
        if not port:
            return
        try:
            connection = self._connect(address, int(port))
        except OSError as error:
            client.sendall(os.strerror(error.errno or errno.ETIMEDOUT).encode())
            return
        with connection:
            socket.send_fds(client, [b"ok"], [connection.fileno()])

    def _connect(self, address: str, port: int) -> socket.socket:
        if not self._allowed(address, port):
            raise TimeoutError(errno.ETIMEDOUT, "a firewall is in the way")
        machine = self._find(address)
        if machine is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "no machine has the address")
        return machine.connect(port)


def write_config(home: Path, road: Road) -> Path:
    """Have the `ssh` of who has this home take the road."""
    file = home / ".ssh" / "config"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(road.config())
    return file


def _user(client: socket.socket) -> int:
    """Whose process is at the other end."""
    given = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(given)[1])
