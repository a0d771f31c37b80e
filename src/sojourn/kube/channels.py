"""Websockets to the API server, whose messages begin with the number of a channel."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sojourn.core.errors import MissingDependency, Transient
from sojourn.kube.errors import refusal, unreachable
from sojourn.kube.wire import Wire, open_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from websockets.client import ClientProtocol
    from websockets.http11 import Response

    from sojourn.kube.api import Api

__all__ = ["Channels", "open_channels"]

FRAME = 64 << 10  # bytes of a message; measured: smaller ones are slower, larger ones not faster
_LARGEST = 16 << 20  # of a message that comes in
_PING_EVERY = 20.0  # seconds; what is between may end a connection that seems idle


class Channels:
    """One websocket. One thread reads, any may send."""

    def __init__(
        self, wire: Wire, protocol: ClientProtocol, server: str, early: Sequence[Any] = ()
    ) -> None:
        self._early = early  # what came together with the server's greeting
        self._wire = wire
        self._protocol = protocol
        self._server = server
        self._lock = threading.Lock()  # of the protocol; whoever sends holds the wire's first
        self._parts: list[bytes] = []
        self._closed = threading.Event()
        self._pinging = threading.Thread(target=self._ping, name="sojourn-ping", daemon=True)
        self._pinging.start()

    @property
    def subprotocol(self) -> str:
        """Which of those that were offered the server chose."""
        return str(self._protocol.subprotocol or "")

    def send(self, channel: int, data: bytes | memoryview) -> None:
        """Send one message. Raises BrokenPipeError at the end."""
        message = b"".join((bytes((channel,)), data))
        try:
            self._wire.write_made(lambda: self._encoded(message))
        except OSError as error:
            raise BrokenPipeError(str(error)) from error

    def _encoded(self, message: bytes) -> bytes:
        from websockets.exceptions import InvalidState

        with self._lock:
            try:
                self._protocol.send_binary(message)
            except InvalidState as error:
                raise BrokenPipeError("the connection has ended") from error
            return b"".join(self._protocol.data_to_send())

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """Channel and data of each message, until the server ends it; raises Transient."""
        try:
            yield from self._sorted(self._early)
            while not self._closed.is_set() and (data := self._wire.read()):
                yield from self._received(data)
        except OSError as error:
            if not self._closed.is_set():
                raise unreachable(self._server, error) from error
        if not self._closed.is_set():
            raise unreachable(self._server, ConnectionResetError("the connection was lost"))

    def _received(self, data: bytes) -> list[tuple[int, bytes]]:
        with self._lock:
            self._protocol.receive_data(data)
            events = self._protocol.events_received()
        found = self._sorted(events)
        # Answers to pings. Not if somebody sends just now: they may wait for us to read.
        self._wire.write_if_free(self._pending)
        return found

    def _sorted(self, events: Sequence[Any]) -> list[tuple[int, bytes]]:
        from websockets.frames import Frame, Opcode

        found: list[tuple[int, bytes]] = []
        for event in events:
            if not isinstance(event, Frame):
                continue
            if event.opcode is Opcode.CLOSE:
                self._closed.set()
            elif event.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
                self._parts.append(bytes(event.data))
                if event.fin:
                    message = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
                    self._parts = []
                    if message:
                        found.append((message[0], message[1:]))
        return found

    def _pending(self) -> bytes:
        with self._lock:
            return b"".join(self._protocol.data_to_send())

    def _ping(self) -> None:
        while not self._closed.wait(_PING_EVERY):
            with suppress(Exception):
                with self._lock:
                    self._protocol.send_ping(b"")
                self._wire.write_if_free(self._pending)

    def close(self) -> None:
        """End it. Can be repeated."""
        self._closed.set()
        with suppress(Exception):
            with self._lock:
                self._protocol.send_close(1000)
            self._wire.write_if_free(self._pending)
        self._wire.close()
        if self._pinging is not threading.current_thread():
            self._pinging.join(1.0)


def open_channels(
    api: Api, what: str, path: str, query: Sequence[tuple[str, str]], offered: Sequence[str]
) -> Channels:
    """Open a websocket below the API server's URL; `what` is said in errors.

    Raises AuthError, NotFound and others for a refusal, Transient if there is no answer.
    """
    headers = api.credentials.headers()
    channels = _try(api, what, path, query, offered, headers, last=not api.credentials.can_renew)
    if channels is None:
        headers = api.credentials.headers(refused=headers)
        channels = _try(api, what, path, query, offered, headers, last=True)
    if channels is None:
        raise refusal(what, 401, {}, api.namespace)
    return channels


def _try(
    api: Api,
    what: str,
    path: str,
    query: Sequence[tuple[str, str]],
    offered: Sequence[str],
    headers: dict[str, str],
    *,
    last: bool,
) -> Channels | None:
    """None: other credentials may do, if these are not the last."""
    cluster = api.login.cluster
    server = cluster.server.rstrip("/")
    try:
        # The same proxy as for all other calls, or none: `login` decided.
        wire = open_wire(server, api.credentials.tls(), cluster.server_name, cluster.proxy)
    except OSError as error:
        raise unreachable(server, error) from error
    try:
        protocol = _protocol(f"ws{server.removeprefix('http')}{path}?{urlencode(query)}", offered)
        answer, early = _greet(wire, protocol, headers)
        if answer.status_code == 101:
            wire.patient()
            return Channels(wire, protocol, server, early)
        wire.close()
        if answer.status_code == 401 and not last:
            return None
        told = _told(bytes(answer.body or b""))
        raise refusal(what, answer.status_code, told, api.namespace)
    except OSError as error:
        wire.close()
        raise unreachable(server, error) from error
    except BaseException:
        wire.close()
        raise


def _protocol(url: str, offered: Sequence[str]) -> ClientProtocol:
    try:
        from websockets.client import ClientProtocol  # not free, and only needed here
        from websockets.typing import Subprotocol
        from websockets.uri import parse_uri
    except ImportError as error:
        raise MissingDependency("k8s", "Kubernetes support is not installed") from error
    return ClientProtocol(
        parse_uri(url),
        subprotocols=[Subprotocol(name) for name in offered],
        max_size=_LARGEST,
    )


def _greet(
    wire: Wire, protocol: ClientProtocol, headers: dict[str, str]
) -> tuple[Response, list[Any]]:
    """The answer, and what came right behind it."""
    request = protocol.connect()
    for name, value in headers.items():
        request.headers[name] = value
    protocol.send_request(request)
    wire.write(b"".join(protocol.data_to_send()))
    while True:
        data = wire.read()
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()
        events: list[Any] = list(protocol.events_received())
        if events:
            answer, *early = events
            if answer.status_code == 101 and protocol.handshake_exc:
                raise Transient(f"The API server answered strangely: {protocol.handshake_exc}")
            return answer, early
        if not data:
            raise ConnectionResetError("the server ended the connection")


def _told(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {"message": body[:300].decode(errors="replace")} if body else {}
    return found if isinstance(found, dict) else {}
