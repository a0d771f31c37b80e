"""The HTTP server of a simulated cloud, on a port of the loopback.

Everything is read before it is answered, and connections stay open. What is answered does not
belong here.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from tests.simcloud.common.wire import CUT, Answer, Request


class Handler(WSGIRequestHandler):
    """Talks to one client."""

    disable_nagle_algorithm = True  # else each call waits for a delayed acknowledgement

    server: Server  # type: ignore[assignment, unused-ignore]

    def run_wsgi(self) -> None:
        """Answer one request. werkzeug's way closes the connection after each and waits before."""
        answer = self.server.answer(_request(self.make_environ()))
        if answer.status == CUT:
            self.close_connection = True
            return
        self.send_response(answer.status)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        for name, value in headers.items():
            if name not in ("connection", "content-length", "status", "server", "date"):
                self.send_header(name, value)
        length = headers.get("content-length", "0") if self.command == "HEAD" else len(answer.body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing is printed."""

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """A client that goes away is no error."""


class Server(ThreadedWSGIServer):
    """Serves until it is closed; then nothing of it is left."""

    request_queue_size = 128

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        handler: type[Handler] = Handler,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer
        self._clients: set[socket.socket] = set()
        self._serving: list[threading.Thread] = []  # all that may still run
        self._guard = threading.Lock()
        super().__init__("127.0.0.1", 0, None, handler=handler, ssl_context=tls)  # type: ignore[arg-type]
        self._loop = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self.shutdown()
        self._loop.join()
        with self._guard:
            clients = list(self._clients)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._serving:
            thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._guard:
            self._clients.add(request)
        self._serving = [each for each in self._serving if each.is_alive()]
        self._serving.append(thread)
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._guard:
            self._clients.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""


def _request(environ: dict[str, Any]) -> Request:
    length = environ.get("CONTENT_LENGTH")
    stream = environ["wsgi.input"]
    body = stream.read() if environ.get("wsgi.input_terminated") else stream.read(int(length or 0))
    if len(body) < int(length or 0):  # killed while it was asking: nobody has asked for anything
        raise ConnectionResetError("the client is gone")
    environ["wsgi.input"] = BytesIO(body)
    path, _, query = environ["REQUEST_URI"].partition("?")
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }
    return Request(environ["REQUEST_METHOD"], path, query, headers, body, environ)
