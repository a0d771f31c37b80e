"""The server of all of Azure's names, on one port of the loopback: a proxy that ends TLS itself.

A client reaches it as its HTTPS proxy, a machine by having the names in its /etc/hosts. Both ask
for the addresses that the real Azure has. What is answered does not belong here.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any

from tests.simcloud.az.tls import Authority
from tests.simcloud.common.wire import CUT, Answer, Request

_EMPTY = (204, 304)
_HELLO = b"\x16"  # the first byte of a client that begins with TLS


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each call waits for a delayed acknowledgement
    secure = False

    server: Server
    request: socket.socket

    def setup(self) -> None:
        self._plain = self.request
        if self.request.recv(1, socket.MSG_PEEK) == _HELLO:
            self._secure()
        super().setup()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        if self.secure:
            with suppress(OSError):
                self.request.close()

    def do_CONNECT(self) -> None:
        host, _, port = self.path.partition(":")
        if port != "443" or not self.server.knows(host):
            self.send_error(502, "There is no such host in the simulated Azure")
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        self._secure()
        super().setup()
        self.close_connection = False

    def _secure(self) -> None:
        secured = self.server.context.wrap_socket(self.request, server_side=True)
        self.server.replace(self._plain, secured)
        self.request, self.secure = secured, True

    def _answer(self) -> None:
        if not self.secure:
            self.send_error(403, "Azure is reached by TLS")
            return
        request = self._read()
        answer = self.server.answer(request) if request else Answer(CUT, b"", {})
        if answer.status == CUT:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers and answer.status not in _EMPTY:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and answer.status not in _EMPTY:
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815

    def _read(self) -> Request | None:
        """None: the client was killed while it was asking, and has asked for nothing."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        length = int(headers.get("content-length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            return None
        path, _, query = self.path.partition("?")
        return Request(self.command, path, query, headers, body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """By the clock of the subscription, as everything else."""
        return super().date_time_string(self.server.now() if timestamp is None else timestamp)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


class Server(TCPServer):
    """Serves until it is closed; then nothing of it is left."""

    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        knows: Callable[[str], bool],
        authority: Authority,
        now: Callable[[], float],
    ) -> None:
        self.now = now
        self.answer = answer
        self.knows = knows
        self.context = authority.context()
        self._clients: dict[int, socket.socket] = {}
        self._serving: list[threading.Thread] = []  # all that may still run
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._loop = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self.shutdown()
        self._loop.join()
        with self._guard:
            clients = list(self._clients.values())
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._serving:
            thread.join()
        self.server_close()

    def replace(self, plain: socket.socket, secured: ssl.SSLSocket) -> None:
        """A secured client has another socket, and the plain one is detached."""
        with self._guard:
            self._clients[id(plain)] = secured

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._guard:
            self._clients[id(request)] = request
        self._serving = [each for each in self._serving if each.is_alive()]
        self._serving.append(thread)
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            with suppress(OSError):  # a client that goes away is no error
                self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            with self._guard:
                self._clients.pop(id(request), None)
