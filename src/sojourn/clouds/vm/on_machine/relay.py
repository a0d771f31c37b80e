"""A connection to a port of this machine, by way of the standard streams.

python3 -m sojourn.clouds.vm.on_machine.relay PORT. It says `+` once it is connected.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_AT_ONCE = 1 << 16  # bytes
_CONNECT_WITHIN = 10.0  # seconds


def main() -> int:
    """Until the other side ends it."""
    try:
        opened = socket.create_connection(("127.0.0.1", int(sys.argv[1])), _CONNECT_WITHIN)
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        return 1
    opened.settimeout(None)
    _write(b"+")
    threading.Thread(target=_send, args=(opened,), daemon=True).start()
    try:
        while data := opened.recv(_AT_ONCE):
            _write(data)
    except OSError:
        return 1
    return 0


def _send(opened: socket.socket) -> None:
    try:
        while data := os.read(0, _AT_ONCE):
            opened.sendall(data)
        opened.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    os._exit(main())  # the other direction may still be waiting
