"""What a program beside the agent counts, as it tells at a port of loopback."""

from __future__ import annotations

import http.client
import random
import socket
from contextlib import closing, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["free_port", "metric", "values"]

_HOST = "127.0.0.1"  # which the agent and the script have in common, whatever they run in
_WITHIN = 2.0  # seconds for an answer from this machine
_LARGEST = 4 << 20  # bytes
_PORTS = range(20_000, 32_768)  # below those that systems give to connections at any time
_TRIES = 20


def free_port() -> int:
    """For the program to listen at, a while from now."""
    for port in random.sample(_PORTS, _TRIES):
        with socket.socket() as found, suppress(OSError):
            found.bind((_HOST, port))
            return port
    with socket.socket() as found:
        found.bind((_HOST, 0))
        return int(found.getsockname()[1])


def metric(port: int, name: str, mark: str = "") -> float | None:
    """The sum of all values of one metric; 0 of a program without the mark; None: no answer."""
    try:
        # Not by urllib: it would ask a proxy.
        with closing(http.client.HTTPConnection(_HOST, port, _WITHIN)) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read(_LARGEST).decode("utf-8", "replace")
        return sum(values(text, name)) if mark in text else 0
    except (OSError, ValueError, http.client.HTTPException):
        return None


def values(text: str, name: str) -> Iterator[float]:
    """All values of one metric: of lines like `name{label="value"} 1`."""
    for line in text.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")):
            yield float(line.rpartition("}")[2].removeprefix(name).split()[0])
