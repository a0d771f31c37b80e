"""Runs a command in a container, as `kubectl exec` does: over a WebSocket, with channels in it."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import urlencode

from tests.kube.api import Api, ApiError

__all__ = ["Ran", "run"]

_PROTOCOL = "v5.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _STATUS, _CLOSE = 0, 1, 2, 3, 255
_BINARY, _CLOSED = 2, 8


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    code: int
    out: str
    err: str


def run(api: Api, pod: str, command: Sequence[str], stdin: bytes = b"", timeout: float = 60) -> Ran:
    """`pod` is its path in the API."""
    host, port = api.server.hostname or "", api.server.port or 443
    query = [("stdin", "1"), ("stdout", "1"), ("stderr", "1"), *(("command", c) for c in command)]
    with (
        socket.create_connection((host, port), timeout=timeout) as plain,
        api.tls.wrap_socket(plain, server_hostname=host) as tls,
        tls.makefile("rb") as answers,
    ):
        _upgrade(tls, answers, f"{pod}/exec?{urlencode(query)}", f"{host}:{port}", api.headers)
        for start in range(0, len(stdin), 1 << 16):
            _send(tls, bytes([_STDIN]) + stdin[start : start + (1 << 16)])
        _send(tls, bytes([_CLOSE, _STDIN]))
        received = {_STDOUT: b"", _STDERR: b"", _STATUS: b""}
        while (message := _receive(answers)) is not None:
            if message:
                received[message[0]] += message[1:]
    return Ran(_code(received[_STATUS]), received[_STDOUT].decode(), received[_STDERR].decode())


def _upgrade(
    tls: ssl.SSLSocket, answers: BinaryIO, target: str, host: str, headers: dict[str, str]
) -> None:
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: Upgrade"]
    lines += ["Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    lines += [f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}"]
    lines += [f"Sec-WebSocket-Protocol: {_PROTOCOL}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    tls.sendall("\r\n".join([*lines, "", ""]).encode())
    status = int(answers.readline().split()[1])
    length = 0
    while line := answers.readline().strip().lower():
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if status != 101:
        raise ApiError(status, answers.read(length))


def _send(tls: ssl.SSLSocket, data: bytes) -> None:
    """A client has to mask what it sends; zeros are a mask, too."""
    if len(data) < 126:
        size = struct.pack("!B", 0x80 | len(data))
    else:
        size = struct.pack("!BQ", 0x80 | 127, len(data))
    tls.sendall(bytes([0x80 | _BINARY]) + size + bytes(4) + data)


def _receive(answers: BinaryIO) -> bytes | None:
    """A message, or None at the end."""
    head = answers.read(2)
    if len(head) < 2 or head[0] & 0xF == _CLOSED:
        return None
    length = head[1] & 0x7F
    if length >= 126:
        length = int.from_bytes(answers.read(2 if length == 126 else 8), "big")
    data = answers.read(length)
    return data if head[0] & 0xF in (0, 1, _BINARY) else b""


def _code(status: bytes) -> int:
    ended = json.loads(status)
    if ended["status"] == "Success":
        return 0
    causes = ended.get("details", {}).get("causes", [])
    codes = [int(cause["message"]) for cause in causes if cause["reason"] == "ExitCode"]
    if not codes:
        raise ApiError(500, status)
    return codes[0]
