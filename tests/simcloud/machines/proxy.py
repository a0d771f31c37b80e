"""What `ssh` starts to get a connection to a machine: `proxy.py NAME HOST PORT`, see `road`.

It gets the connected socket from the road, and hands it on to `ssh` (ProxyUseFdpass); so nobody
stands between the two. It runs with the standard library alone.
"""

from __future__ import annotations

import socket
import sys

_LONGEST = 1024


def main(name: str, host: str, port: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as road:
        try:
            road.connect(f"\0{name}")
            road.sendall(f"{host} {port}".encode())
            answer, fds, _, _ = socket.recv_fds(road, _LONGEST, 1)
        except OSError as error:
            answer, fds = str(error.strerror).encode(), []
    if not fds:
        sys.stderr.write(f"ssh: connect to host {host} port {port}: {answer.decode()}\n")
        return 255
    with socket.socket(fileno=1) as client:
        socket.send_fds(client, [b"\0"], fds)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
