"""Waiting for the SSH servers of the other machines of a gang.

They start with the script that needs them. `ssh` itself waits a whole second before it tries again,
and some programs give up on the first refusal.
"""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

__all__ = ["await_servers"]

_WITHIN = 30.0  # seconds; `ssh` says later what is wrong
_EACH = 2.0
_PAUSE = 0.05
_AT_ONCE = 32
_BANNER = 256  # bytes: all of it, or the server would log that the connection was reset
_GREETING = b"SSH-2.0-Sojourn\r\n"  # servers log who connects and says nothing


def await_servers(servers: Iterable[tuple[str, int]], stopped: threading.Event) -> None:
    """Return when all of these addresses and ports answer, after a while, or when stopped."""
    waiting = list(servers)
    give_up = time.monotonic() + _WITHIN
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        while waiting:
            answers = zip(waiting, pool.map(_answers, waiting), strict=True)
            waiting = [server for server, answer in answers if not answer]
            if waiting and (stopped.wait(_PAUSE) or time.monotonic() > give_up):
                return


def _answers(server: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(server, timeout=_EACH) as connection:
            connection.sendall(_GREETING)
            return bool(connection.recv(_BANNER))
    except OSError:
        return False
