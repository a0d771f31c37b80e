"""A store that accepts calls and never answers holds nobody up."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, NotFound
from sojourn.storage.interruptible import Interruptible
from sojourn.storage.parallel import Workers
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.faults import memory_store
from tests.support.waiting import until


class Silent:
    """A server that takes connections, and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.append(self._socket.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        for opened in (self._socket, *self.connections):
            opened.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


def options(server: Silent) -> dict[str, object]:
    return {
        "endpoint": f"http://127.0.0.1:{server.port}",
        "access_key_id": "x",
        "secret_access_key": "x",
        "region": "us-east-1",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }


@contextmanager
def cancelled_once(ctx: Context, server: Silent) -> Iterator[None]:
    """As soon as somebody waits for an answer."""

    def cancel() -> None:
        until(lambda: server.connections)
        ctx.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get("x"),
        lambda store: list(store.stream("x")),
        lambda store: store.get_ranges("x", [(0, 1)]),
        lambda store: store.put("x", b"x"),
        lambda store: store.put_new("x", b"x"),
        lambda store: store.copy("x", "y"),
        lambda store: store.list("x"),
        lambda store: store.head("x"),
        lambda store: store.delete(["x"]),
    ],
)
def test_every_call_is_broken_off(silent: Silent, call) -> None:  # type: ignore[no-untyped-def]
    ctx = Context()
    store = Interruptible(open_store(StoreAddress("s3://bucket", options(silent))), ctx)
    with cancelled_once(ctx, silent), pytest.raises(Cancelled):
        call(store)


def test_workers_are_broken_off(silent: Silent) -> None:
    ctx = Context()
    store: Store = Interruptible(open_store(StoreAddress("s3://bucket", options(silent))), ctx)

    def get_many() -> None:
        with Workers(ctx, 4) as workers:
            for number in range(20):
                workers.submit(store.get, f"{number}", then=lambda _: None)

    with cancelled_once(ctx, silent), pytest.raises(Cancelled):
        get_many()


_PULL = """
import sys
from pathlib import Path
from sojourn.cli.session import opened
from sojourn.core.filters import Filters
from sojourn.storage.data import StoreData
from sojourn.storage.store import StoreAddress, open_store
data = StoreData(lambda: open_store(StoreAddress("s3://bucket", {options})))
with opened(as_json=False) as session:
    data.{call}
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "call",
    [
        'pull(session.ctx, "out", Path("."), Filters(), None)',
        "records(session.ctx, 1)",
        "watch(session.ctx)",
        "load(session.ctx)",
    ],
)
def test_a_command_ends_on_a_signal(silent: Silent, number: signal.Signals, call: str) -> None:
    program = _PULL.format(options=options(silent), call=call)
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    try:
        until(lambda: silent.connections)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)  # far less than the store is waited for
    finally:
        process.kill()
    assert b"Cancelled" in said


def test_what_answers_is_not_changed() -> None:
    store = Interruptible(memory_store(), Context())
    store.put("a/b", b"12345")
    assert not store.put_new("a/b", b"other")
    assert bytes(store.get("a/b")) == b"12345"
    assert b"".join(store.stream("a/b")) == b"12345"
    assert [bytes(part) for part in store.get_ranges("a/b", [(1, 2)])] == [b"23"]
    store.copy("a/b", "a/c")
    assert [item.path for item in store.list("a")] == ["a/b", "a/c"]
    assert [item.path for item in store.list("a", after="a/b")] == ["a/c"]
    store.delete(["a/b"])
    assert store.head("a/b") is None
    store.keep(["a/c"])
    with pytest.raises(NotFound):
        store.get("a/b")
