"""TCP and TLS to the API server, for one thread that reads and others that write.

Python's TLS sockets must not be used by two threads at once. Here only the encryption takes
turns, in memory; the socket itself is read and written side by side, and in large pieces.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from sojourn.core.errors import AuthError, InvalidInput, Transient

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Wire", "open_wire"]

_CONNECT_WITHIN = 10.0  # seconds
_ANSWER_WITHIN = 40.0  # the API server itself waits for a node for 30
_READ_AT_ONCE = 256 << 10
_DECRYPTED_AT_ONCE = 64 << 10
_LONGEST_ANSWER = 64 << 10  # of a proxy
_ALIVE_AFTER = 30  # seconds of silence before the system asks whether the other side is there


class Wire:
    """Bytes both ways. Raises OSError."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._sending = threading.Lock()
        self._crypt = threading.Lock()  # taken by a sender after `_sending`
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None

    def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Greet the other side; from now on everything is encrypted."""
        tls = context.wrap_bio(self._in, self._out, server_hostname=name)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._out.read())
                data = self._socket.recv(_READ_AT_ONCE)
                if not data:
                    raise ConnectionResetError("the server ended the connection") from None
                self._in.write(data)
            else:
                break
        self._socket.sendall(self._out.read())
        self._tls = tls

    def patient(self) -> None:
        """From now on it may be silent for as long as it likes."""
        self._socket.settimeout(None)

    def read(self) -> bytes:
        """What has come; nothing at the end."""
        while True:
            if self._tls and (data := self._decrypted(self._tls)):
                return data
            data = self._socket.recv(_READ_AT_ONCE)
            if not data or not self._tls:
                return data
            with self._crypt:
                self._in.write(data)

    def _decrypted(self, tls: ssl.SSLObject) -> bytes:
        found: list[bytes] = []
        # What TLS itself wants to answer goes out with what is sent next.
        with self._crypt, suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while data := tls.read(_DECRYPTED_AT_ONCE):
                found.append(data)
        return b"".join(found)

    def write(self, data: bytes) -> None:
        """Send all of it."""
        self.write_made(lambda: data)

    def write_made(self, make: Callable[[], bytes]) -> None:
        """Send what is made when it is this thread's turn."""
        with self._sending:
            self._send(make())

    def write_if_free(self, make: Callable[[], bytes]) -> None:
        """Send what is made, unless somebody sends just now."""
        if self._sending.acquire(blocking=False):
            try:
                self._send(make())
            finally:
                self._sending.release()

    def _send(self, data: bytes) -> None:
        if self._tls:
            with self._crypt:
                rest = memoryview(data)
                while rest:
                    rest = rest[self._tls.write(rest) :]
                data = self._out.read()
        if data:
            self._socket.sendall(data)

    def close(self) -> None:
        """End it, also for those who read or write."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def open_wire(server: str, tls: ssl.SSLContext | None, name: str = "", proxy: str = "") -> Wire:
    """Connect to a server by its URL; `name`: of its certificate, if that is another one.

    Raises OSError, and AuthError for a certificate that is not trusted.
    """
    url = urlsplit(server)
    host, port = url.hostname or "", url.port or (80 if tls is None else 443)
    connected = _through(urlsplit(proxy), host, port) if proxy else _direct(host, port)
    wire = Wire(connected)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        with suppress(AttributeError):  # Linux only
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ALIVE_AFTER)
        if tls is not None:
            wire.encrypt(tls, name or host)
        connected.settimeout(_ANSWER_WITHIN)
    except ssl.SSLCertVerificationError as error:
        wire.close()
        raise AuthError(
            f"The certificate of {server} is not trusted: {error.verify_message}",
            hint="Update your kubeconfig with your provider's tool.",
        ) from error
    except BaseException:
        wire.close()
        raise
    return wire


def _direct(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=_CONNECT_WITHIN)


def _through(proxy: SplitResult, host: str, port: int) -> socket.socket:
    """By way of a proxy, as HTTP's CONNECT asks for it."""
    if proxy.scheme != "http":
        raise InvalidInput("proxy-url", f"only http:// is supported, got {proxy.scheme}://")
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        plain = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(plain.encode()).decode()}")
    connected = _direct(proxy.hostname or "", proxy.port or 80)
    try:
        connected.sendall("\r\n".join([*lines, "", ""]).encode())
        said = b""
        while b"\r\n\r\n" not in said:
            data = connected.recv(1)  # what follows is no longer the proxy's
            if not data or len(said) > _LONGEST_ANSWER:
                raise ConnectionResetError("the proxy ended the connection")
            said += data
        status = said.split(b"\r\n", 1)[0].decode("latin-1")
        if status.split()[1:2] != ["200"]:
            raise Transient(f"The proxy {proxy.hostname} did not connect to {target}: {status}")
    except BaseException:
        connected.close()
        raise
    return connected
