"""Objects of the store that are keys of the Secret: whoever writes at the same time, one wins."""

from __future__ import annotations

import base64
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from sojourn.clouds.k8s.on_machine.taskstore import TaskStore as MachineStore
from sojourn.clouds.k8s.secret import SecretObjects, check_size, in_secret
from sojourn.clouds.k8s.store import TaskStore
from sojourn.core.errors import Conflict, InvalidInput, NotFound, Transient
from sojourn.core.gang import FILES_AT_MOST
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from sojourn.kube.api import Api
from sojourn.storage import layout
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.unit.clouds.k8s.cluster import MemoryApi

_ID = TaskId.deterministic("test")


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    made.add("Secret", str(_ID))
    return made


@pytest.fixture
def secret(api: MemoryApi) -> SecretObjects:
    return SecretObjects(cast(Api, api), _ID)


def test_objects_come_and_go(secret: SecretObjects) -> None:
    assert secret.head(layout.TASK) is None
    secret.put(layout.TASK, b"one")
    secret.put("creators/a", b"\0\xff")
    secret.put("creators/b", b"")
    assert bytes(secret.get(layout.TASK)) == b"one"
    assert bytes(secret.get("creators/a")) == b"\0\xff"
    assert [item.path for item in secret.list("creators")] == ["creators/a", "creators/b"]
    assert [item.path for item in secret.list("creators", "creators/a")] == ["creators/b"]
    info = secret.head("creators/a")
    assert info is not None
    assert info.size == 2
    secret.delete("creators/a")
    secret.delete("creators/a")
    assert [item.path for item in secret.list("creators")] == ["creators/b"]
    with pytest.raises(NotFound):
        secret.get("creators/a")


def test_without_a_secret_there_is_no_task(api: MemoryApi, secret: SecretObjects) -> None:
    api.objects.clear()
    for call in (lambda: secret.get("x"), lambda: secret.put("x", b""), lambda: secret.list("x")):
        with pytest.raises(NotFound, match=f"Task {_ID} not found"):
            cast(Any, call)()
    secret.delete("creators/x")


def test_two_writers_do_not_lose_each_others_words(api: MemoryApi, secret: SecretObjects) -> None:
    def meanwhile() -> None:
        api.before = lambda: None
        secret.put("creators/b", b"b")

    api.before = meanwhile
    secret.put("creators/a", b"a")
    assert bytes(secret.get("creators/a")) == b"a"
    assert bytes(secret.get("creators/b")) == b"b"


def test_exactly_one_of_many_wins(api: MemoryApi, secret: SecretObjects) -> None:
    start = threading.Barrier(8)

    def write(number: int) -> bool:
        start.wait()
        return secret.put_new("creators/x", str(number).encode())

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    assert won.count(True) == 1
    assert bytes(secret.get("creators/x")) == str(won.index(True)).encode()


def test_many_writers_all_get_through(secret: SecretObjects) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: secret.put(f"creators/{n}", b"x"), range(8)))
    assert len(secret.list("creators")) == 8


def test_an_answer_that_was_lost_is_no_defeat(api: MemoryApi, secret: SecretObjects) -> None:
    """The server made the change and its answer did not arrive: it is asked again, and refuses."""
    real = api.replace

    def lost(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        real(kind, body)
        raise Conflict("it was changed")

    api.replace = lost  # type: ignore[method-assign]
    assert secret.put_new("creators/x", b"mine") is True
    assert secret.put_new("creators/x", b"another") is False


def test_a_secret_that_keeps_changing(api: MemoryApi, secret: SecretObjects) -> None:
    def refused(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        raise Conflict("it was changed")

    api.replace = refused  # type: ignore[method-assign]
    with pytest.raises(Transient, match="kept changing"):
        secret.put("creators/x", b"")


def _noise(size: int) -> str:
    """A text that hardly shrinks, for one."""
    return base64.b64encode(random.Random(1).randbytes(size)).decode()[:size]


def test_sizes() -> None:
    check_size(Task("#!/bin/sh\n", files={"/a": _noise(FILES_AT_MOST)}))
    many = {f"V{number}": "x" * 100_000 for number in range(8)}
    check_size(Task("#!/bin/sh\n" + "x" * 1_000_000, environment=many))  # it shrinks to nothing
    with pytest.raises(InvalidInput) as caught:
        check_size(Task("#!/bin/sh\n", files={"/a": _noise(500_000)}, environment=many))
    assert caught.value.path == "environment"
    assert "1,300,026 bytes in all" in str(caught.value)


def test_a_long_task_is_packed(api: MemoryApi, secret: SecretObjects, tmp_path: Path) -> None:
    long = b"{" + _noise(FILES_AT_MOST).encode()
    assert secret.put_new(layout.TASK, long)
    assert secret.put_new(layout.TASK, long)
    assert not secret.put_new(layout.TASK, b"{}")
    assert bytes(secret.get(layout.TASK)) == long
    kept = base64.b64decode(api.get("Secret", str(_ID))["data"][layout.TASK])
    assert len(kept) < FILES_AT_MOST
    (tmp_path / layout.TASK).write_bytes(kept)
    store = MachineStore(open_store(StoreAddress(f"file://{tmp_path}")), tmp_path)
    assert bytes(store.get(layout.TASK)) == long


def test_what_is_where(tmp_path: Any, secret: SecretObjects) -> None:
    assert in_secret("creators/x")
    assert not in_secret("creatorsx")
    opened: list[Store] = []

    def rest() -> Store:
        opened.append(open_store(StoreAddress(f"file://{tmp_path}")))
        return opened[-1]

    store = TaskStore(secret, rest, lambda: True)
    store.put(layout.TASK, b"task")
    assert store.put_new("creators/x", b"x")
    assert bytes(store.get(layout.TASK)) == b"task"
    assert b"".join(store.stream(layout.TASK)) == b"task"
    assert [item.path for item in store.list(layout.CREATORS)] == ["creators/x"]
    store.keep([layout.TASK])
    store.delete(["creators/x"])
    assert store.head("creators/x") is None
    assert opened == []  # nobody was kept waiting for a pod
    store.put("reports/x", b"report")
    assert bytes(store.get("reports/x")) == b"report"
    store.delete(["reports/x", layout.TASK])
    assert store.head("reports/x") is None
    assert store.head(layout.TASK) is None
