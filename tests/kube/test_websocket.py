"""Commands, ports and a store in a pod, through a real API server."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import sojourn
from sojourn.core.errors import NotFound, Transient
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load
from sojourn.kube.websocket import Forwarded, duplex, execute, forward
from sojourn.storage.served.client import ServedStore
from tests.kube import images
from tests.kube.fixtures import KubeCluster
from tests.kube.namespaces import Namespace

POD = "box"
_SERVE = "mkdir -p /tmp/store; PYTHONPATH=/tmp exec python3 -m sojourn.storage.served /tmp/store"
_LISTEN = """\
import socket
server = socket.create_server(("127.0.0.1", 8080))
while True:
    connection, _ = server.accept()
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)
"""


@pytest.fixture
def api(
    kube_cluster: KubeCluster, kube_namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> Api:
    """A namespace with a pod that does nothing."""
    kube_namespace.wait(kube_namespace.run_pod(POD, image=images.PYTHON), "Running")
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    login = replace(load(), namespace=kube_namespace.name)
    return Api(lambda: login)


def _run(api: Api, *command: str, input: bytes = b"") -> tuple[int, bytes]:
    process = execute(api, POD, "main", command)
    try:
        process.write(input)
        process.close_input()
        said = b"".join(data for _, data in process.output())
        return process.wait(), said
    finally:
        process.close()


def test_a_command_has_input_output_and_an_exit_code(api: Api) -> None:
    process = execute(api, POD, "main", ["sh", "-c", "cat; echo bad >&2; exit 7"])
    process.write(b"one")
    process.close_input()
    assert process.closes_input
    assert sorted(process.output()) == [(1, b"one"), (2, b"bad\n")]
    assert process.wait() == 7
    process.close()


def test_a_command_that_is_killed_or_cannot_run_ends_as_in_a_shell(api: Api) -> None:
    assert _run(api, "sh", "-c", "kill -9 $$") == (137, b"")
    assert _run(api, "nope")[0] == 127
    assert _run(api, "/etc/passwd")[0] == 126


def test_much_goes_both_ways_at_once(api: Api) -> None:
    body = os.urandom(1 << 20) * 16
    process = execute(api, POD, "main", ["cat"])

    def write() -> None:
        process.write(body)
        process.close_input()

    writer = threading.Thread(target=write)
    writer.start()
    assert b"".join(data for _, data in process.output()) == body
    writer.join()
    assert process.wait() == 0
    process.close()


def test_a_terminal(api: Api) -> None:
    process = execute(api, POD, "main", ["sh"], tty=True)
    process.resize(33, 77)
    process.write(b"stty size; exit 3\n")
    said = b"".join(data for _, data in process.output())
    assert b"33 77" in said
    assert process.wait() == 3
    process.close()


def test_a_pod_that_is_not_there(api: Api) -> None:
    with pytest.raises(NotFound, match="not found"):
        execute(api, "none", "main", ["true"])
    with pytest.raises(NotFound, match="not found"):
        forward(api, "none", 80)


def test_a_port(api: Api) -> None:
    listening = execute(api, POD, "main", ["python3", "-c", _LISTEN])
    body = os.urandom(300_000)
    try:
        for _ in range(3):
            connection = _connected(api, 8080)
            connection.write(body)
            said = b""
            while len(said) < len(body):
                said += connection.read()
            assert said == body
            connection.close()
    finally:
        listening.close()


def _connected(api: Api, port: int) -> Forwarded:
    """The listener may need a moment."""
    for _ in range(100):
        connection = forward(api, POD, port)
        try:
            connection.write(b"?")
            if connection.read() == b"?":
                return connection
        except (NotFound, Transient, BrokenPipeError):
            pass
        connection.close()
    raise AssertionError("nobody listens")


def test_a_port_where_nobody_listens(api: Api) -> None:
    connection = forward(api, POD, 9)
    with pytest.raises(Transient, match="port 9"):
        connection.read()
    connection.close()


@pytest.fixture
def store(api: Api) -> Iterator[ServedStore]:
    packed = io.BytesIO()
    source = Path(sojourn.__file__).parent
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in ("__init__.py", "core", "storage"):
            archive.add(source / path, f"sojourn/{path}")
    assert _run(api, "tar", "-xC", "/tmp", input=packed.getvalue()) == (0, b"")
    with ServedStore(lambda: duplex(api, POD, "main", ["sh", "-c", _SERVE])) as store:
        yield store


def test_a_store_in_a_pod(store: ServedStore) -> None:
    bodies = {f"objects/{number}": os.urandom(3_000_000) for number in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.put, bodies, bodies.values()))
        assert [bytes(body) for body in pool.map(store.get, bodies)] == list(bodies.values())
    assert store.put_new("new", b"one")
    assert not store.put_new("new", b"two")
    assert [item.path for item in store.list("objects")] == sorted(bodies)


def test_a_store_whose_server_is_killed_answers_all_the_same(api: Api, store: ServedStore) -> None:
    body = os.urandom(1 << 20) * 24
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.5):
            _run(api, "sh", "-c", "kill -9 $(pgrep -of '[s]ojourn.storage.served')")
            over.wait(2.0)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for number in range(4):
            store.put(f"objects/{number}", body)
    finally:
        over.set()
        killer.join()
    assert [item.size for item in store.list("")] == [len(body)] * 4
    assert bytes(store.get("objects/3")) == body


def test_a_program_that_is_missing_is_named(api: Api) -> None:
    store = ServedStore(lambda: duplex(api, POD, "main", ["sh", "-c", "nope"]), retry_for=1.0)
    with store, pytest.raises(sojourn.SojournError, match="nope"):
        store.get("a")
