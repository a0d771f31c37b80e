"""A small HTTPS server with an authority of its own, and a proxy in front of it."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.support.tls import server_context

__all__ = ["Answer", "Asked", "Authority", "Proxy", "Server"]


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Authority:
    """Signs certificates, and nobody has heard of it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "throwaway")])
        made = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
        )

    def issue(self, name: str, *names: str) -> tuple[bytes, bytes]:
        """A certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        others: list[x509.GeneralName] = []
        for item in names:
            try:
                others.append(x509.IPAddress(ipaddress.ip_address(item)))
            except ValueError:
                others.append(x509.DNSName(item))
        builder = self._builder(subject, key.public_key())
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        return made.public_bytes(Encoding.PEM), _key_pem(key)


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    subject: str  # of the client's certificate


@dataclass
class Answer:
    """A status and JSON, or bytes; several parts are streamed. None: the connection breaks."""

    code: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] | None = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        owner: Server = self.server.owner  # type: ignore[attr-defined]
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        subject = ""
        if isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert():
            parts: Any = (self.connection.getpeercert() or {}).get("subject", ())
            subject = parts[-1][0][1]
        headers = {key.lower(): value for key, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, json.loads(body) if body else None, subject)
        owner.asked.append(asked)
        answer = owner.answer(asked)
        if answer is None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.code)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        if answer.parts is None:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in answer.parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


class _Threads(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that distrust this server break off, and that is tested."""


class Server:
    """Answers by a function that a test sets; `asked` are the requests so far."""

    def __init__(self, folder: Path, authority: Authority, *names: str) -> None:
        self.answer: Callable[[Asked], Answer | None] = lambda _: Answer()
        self.asked: list[Asked] = []
        certificate, key = authority.issue("server", *(names or ("127.0.0.1",)))
        (folder / "server.pem").write_bytes(certificate + key)
        (folder / "ca.pem").write_bytes(authority.pem)
        context = server_context(folder / "server.pem")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        self._server = _Threads(("127.0.0.1", 0), _Handler)
        self._server.owner = self  # type: ignore[attr-defined]
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Proxy:
    """Takes CONNECT and passes bytes on."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            target = head.split()[1].decode()
            self.asked.append(target)
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port)), 10) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
                back.start()
                _pass_on(client, server)
                back.join(5)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def served(folder: Path, authority: Authority, *names: str) -> Iterator[Server]:
    """For fixtures."""
    made = Server(folder, authority, *names)
    yield made
    made.close()
