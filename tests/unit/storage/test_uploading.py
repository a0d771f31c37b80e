"""How far an upload is, seen from elsewhere."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from sojourn.core.activity import Activity, Doing
from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.core.task import Task
from sojourn.storage import layout, uploading
from sojourn.storage.data import StoreData
from sojourn.storage.store import Buffer, Store, StoreAddress, open_store
from tests.support.faults import WatchedStore
from tests.support.waiting import until

CTX = Context()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return open_store(StoreAddress(f"file://{tmp_path}/store"))


class Slow(WatchedStore):
    """A store that takes objects one by one, when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.go = threading.Semaphore(0)

    def put(self, path: str, data: Buffer) -> None:
        if "/objects/" in path:
            self.go.acquire()
        super().put(path, data)


def test_an_upload_is_seen_while_it_lasts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "_TOLD_EVERY", 0.0)
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    for number in range(4):
        (workdir / f"{number}").write_bytes(os.urandom(9 << 20))
    slow = Slow(store)
    creator, other = StoreData(lambda: slow), StoreData(lambda: store)
    creator.save(CTX, Task("#!/bin/sh\n"), {})
    assert other.uploading(CTX) is None
    pushing = threading.Thread(target=lambda: creator.push(CTX, workdir, Filters(), None))
    pushing.start()
    try:
        slow.go.release(3)  # of more chunks
        until(lambda: other.uploading(CTX))
        seen = other.uploading(CTX)
    finally:
        slow.go.release(1000)
        pushing.join()
    assert seen
    assert (seen.doing, seen.total) == (Doing.UPLOADING, 4 * (9 << 20))
    assert 0 < seen.done < seen.total


def test_an_old_mark_counts_for_nothing(store: Store, tmp_path: Path) -> None:
    data = StoreData(lambda: store)
    activity = Activity(Doing.UPLOADING, 1, 2)
    path = f"{layout.CREATORS}/someone"
    store.put(path, json.dumps(activity.to_dict()).encode())
    assert data.uploading(CTX) == activity
    os.utime(tmp_path / "store" / path, (0, 0))
    assert data.uploading(CTX) is None


@pytest.mark.parametrize("mark", [b"", b"{", b"[]", b'{"doing": "x"}'])
def test_a_mark_that_tells_nothing(store: Store, mark: bytes) -> None:
    store.put(f"{layout.CREATORS}/someone", mark)
    assert StoreData(lambda: store).uploading(CTX) is None


def test_no_store() -> None:
    data = StoreData(lambda: open_store(StoreAddress("file:///nowhere/at/all")))
    assert data.uploading(CTX) is None
