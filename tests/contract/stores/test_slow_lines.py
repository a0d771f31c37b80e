"""Large bodies take their time on a slow line, and all else is given up soon."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from obstore.store import from_url

from sojourn.core.errors import Transient
from sojourn.storage import objects as module
from sojourn.storage.store import Store, StoreAddress, open_store

LARGE = bytes(300 << 10)
_PIECES = 10
_PAUSE = 0.15  # seconds before each piece, so that a body takes five times the short timeout


class _Slow(BaseHTTPRequestHandler):
    """Takes what is put, piece by piece."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        length = int(self.headers["Content-Length"])
        for _ in range(_PIECES):
            threading.Event().wait(_PAUSE)
            self.rfile.read(length // _PIECES)
        self.rfile.read(length % _PIECES)
        self.server.taken.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Slow)
        self.taken: list[str] = []

    def handle_error(self, *_: object) -> None:
        """A client that gave up is no error here."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setattr(module, "_REQUEST_TIMEOUT", "300ms")
    monkeypatch.setattr(module, "_RETRY_FOR", timedelta(milliseconds=300))
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _address(server: _Server, **client: str) -> StoreAddress:
    options = {
        "endpoint": f"http://127.0.0.1:{server.server_port}",
        "region": "us-east-1",
        "skip_signature": True,
        "client_options": {"allow_http": True, **client},
    }
    return StoreAddress("s3://bucket", options)


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The clients that are opened meanwhile."""
    opened: list[Any] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        opened.append(kwargs)
        return from_url(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, "from_url", counted)
        yield opened


def _put(store: Store, path: str, *, new: bool) -> None:
    if new:
        assert store.put_new(path, LARGE)
    else:
        store.put(path, LARGE)


@pytest.mark.parametrize("new", [False, True], ids=["put", "put_new"])
def test_a_large_body_may_take_longer_than_other_requests(server: _Server, new: bool) -> None:
    _put(open_store(_address(server)), "large", new=new)
    assert server.taken == ["/bucket/large"]


def test_a_small_body_is_given_up_soon(server: _Server) -> None:
    with pytest.raises(Transient):
        open_store(_address(server)).put("small", b"x" * 1000)


def test_what_the_address_says_counts_for_large_bodies_too(server: _Server) -> None:
    address = _address(server, timeout="300ms")
    options = {**address.options, "retry_config": {"retry_timeout": timedelta(milliseconds=300)}}
    with pytest.raises(Transient):
        open_store(StoreAddress(address.url, options)).put("large", LARGE)


def test_the_patient_client_is_opened_once_and_when_it_is_needed(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _counted(monkeypatch) as opened:
        store = open_store(_address(server))
        assert len(opened) == 1
        workers = [threading.Thread(target=store.put, args=(str(n), LARGE)) for n in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(opened) == 2
    assert sorted(server.taken) == [f"/bucket/{n}" for n in range(4)]


def test_a_folder_needs_no_second_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _counted(monkeypatch) as opened:
        store = open_store(StoreAddress(f"file://{tmp_path}"))
        store.put("large", LARGE)
    assert opened == []
    assert (tmp_path / "large").read_bytes() == LARGE
