"""A simulated forge as a server on loopback: strict about what it is asked, and able to fail."""

from __future__ import annotations

import gzip
import io
import json
import re
import ssl
import tarfile
import threading
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.simforge.work import Work

__all__ = ["Call", "Refusal", "SimForge", "bundled", "checked", "packed", "served"]

PROGRAMS = Path(__file__).parent / "programs"


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


@dataclass
class Call:
    """What the forge was asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: Message
    body: Any
    base: str
    port: int = 0  # of whoever asked
    parts: tuple[str, ...] = ()
    sent: dict[str, str] = field(default_factory=dict)  # headers of the answer


Handler = Callable[[Call], tuple[int, object]]


@dataclass
class SimForge:
    """What each forge has. `routes`: by method and pattern of the path."""

    work: Work = field(default_factory=Work)
    token: str = "secret-of-the-owner"
    public: bool = False
    routes: list[tuple[str, re.Pattern[str], Handler]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    before: Callable[[Call], None] = lambda call: None  # may raise Refusal: a fault
    after: Callable[[Call], None] = lambda call: None  # after its effect
    url: str = ""
    driver: str = ""
    publishes_sums: bool = True
    tools: Path | None = None  # commands that its program needs, for machines

    @property
    def repo(self) -> str:
        """The address of its only repository."""
        raise NotImplementedError

    def route(self, method: str, pattern: str, handler: Handler) -> None:
        self.routes.append((method, re.compile(pattern), handler))

    def count(self, pattern: str = "") -> int:
        return sum(bool(re.search(pattern, call)) for call in self.calls)

    def answer(self, call: Call) -> tuple[int, object]:
        for method, pattern, handler in self.routes:
            match = pattern.fullmatch(call.path)
            if match and method == call.method:
                call.parts = match.groups()
                return handler(call)
        raise Refusal(404, "Not Found")

    def program(self) -> bytes:
        """The runner program that it offers."""
        raise NotImplementedError

    def error(self, message: str) -> object:
        """How it tells of one."""
        return {"message": message}

    def download(self, path: str) -> bytes:
        """What its vendor offers: the same program for all architectures."""
        return self.program()

    def environment(self) -> dict[str, str]:
        """Variables that lead to it, beside the address and the token."""
        return {}

    def program_sum(self) -> str:
        return sha256(self.program()).hexdigest()


def packed(folder: Path, *more: Path, inside: str = "") -> bytes:
    """A tar.gz that is the same for the same files; `inside`: the folder that they are in."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted([*folder.rglob("*"), *more]):
            if path.is_file():
                name = path.relative_to(folder) if path.is_relative_to(folder) else path.name
                info = tarfile.TarInfo(f"{inside}{name}")
                info.size, info.mode = path.stat().st_size, 0o755
                archive.addfile(info, io.BytesIO(path.read_bytes()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def bundled(folder: Path, *more: Path) -> bytes:
    """One file that Python can run, of a folder whose main program is `standin.py`."""
    buffer = io.BytesIO(b"#!/usr/bin/env python3\n")
    buffer.seek(0, io.SEEK_END)
    with zipfile.ZipFile(buffer, "a") as archive:
        for path in sorted([*folder.glob("*.py"), *more]):
            name = "__main__.py" if path.name == "standin.py" else path.name
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return buffer.getvalue()


def checked(body: Any, required: Mapping[str, type], optional: Mapping[str, type]) -> Any:
    """Refuse what a strict API would."""
    if not isinstance(body, dict):
        raise Refusal(400, "Problems parsing JSON")
    for name, kind in required.items():
        if not isinstance(body.get(name), kind):
            raise Refusal(422, f"Invalid request. {name} is required")
    for name, value in body.items():
        allowed = {**required, **optional}.get(name)
        if allowed is None or not isinstance(value, allowed):
            raise Refusal(422, f"Invalid request. {name} is not permitted")
    return body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: SimForge

    def _serve(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length", 0) or 0))
        if parts.path.startswith("/_program/"):
            name = parts.path.removeprefix("/_program/")
            self._send(*self.forge.work.program(name, json.loads(data)))
            return
        if parts.path.startswith("/_download/"):
            self._send(200, self.forge.download(parts.path.removeprefix("/_download/")))
            return
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        scheme = self.forge.url.partition(":")[0]
        base = f"{scheme}://{self.headers['Host']}"
        body, port = self._body(data), self.client_address[1]
        call = Call(self.command, parts.path, query, self.headers, body, base, port)
        self.forge.calls.append(f"{call.method} {call.path}")
        try:
            self.forge.before(call)
            status, answer = self.forge.answer(call)
            self.forge.after(call)
        except Refusal as refusal:
            self._send(refusal.status, self.forge.error(str(refusal)), refusal.headers)
        except ConnectionError:
            self.close_connection = True  # no answer at all
        else:
            self._send(status, answer, call.sent)

    def _body(self, data: bytes) -> Any:
        if "x-www-form-urlencoded" in self.headers.get("Content-Type", ""):
            return dict(urllib.parse.parse_qsl(data.decode()))
        try:
            return json.loads(data) if data else None
        except ValueError:
            return data

    def _send(self, status: int, answer: object, headers: Mapping[str, str] | None = None) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        if status == 204:
            data = b""
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # whoever asked is gone

    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _serve  # noqa: N815 -- names of the library

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(
    forge: SimForge, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[SimForge]:
    """On a port of its own, until the end of the block."""
    handler = type("Handler", (_Handler,), {"forge": forge})
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    forge.url = f"{'https' if tls else 'http'}://{host}:{server.server_port}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
