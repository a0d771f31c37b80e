"""What endpoints of machines can be served by: a port of the host, or answers to HTTP requests.

What is answered does not belong here.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from typing import cast

from tests.simcloud.machines.spec import Serve

_CHUNK = 1 << 18
_LINGER = 30.0  # how long a server may take to answer a client that sends no more


def forward(host: str, port: int) -> Serve:
    """Connect each client with this port of the host."""

    def serve(client: socket.socket) -> None:
        with socket.create_connection((host, port)) as server:
            upwards = threading.Thread(target=_pump, args=(client, server), daemon=True)
            upwards.start()
            _pump(server, client)
            _shut(client, socket.SHUT_RDWR)
            upwards.join()

    return serve


@dataclass(frozen=True)
class Request:
    """What a client inside of the machine asks for."""

    method: str
    path: str  # with the query
    headers: Mapping[str, str]  # names in lower case
    body: bytes


@dataclass(frozen=True)
class Response:
    """What it is told."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def http(answer: Callable[[Request], Response]) -> Serve:
    """Serve HTTP/1.1 with the answers of this function, which many threads may call."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            response = answer(Request(self.command, self.path, headers, body))
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    def serve(client: socket.socket) -> None:
        Handler(client, client.getpeername(), cast("BaseServer", None))

    return serve


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until the end, and then that it is the end."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    target.settimeout(_LINGER)
    _shut(target, socket.SHUT_WR)


def _shut(sock: socket.socket, how: int) -> None:
    with suppress(OSError):
        sock.shutdown(how)
