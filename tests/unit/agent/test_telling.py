"""What a machine restores is in its lease while it does."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sojourn.agent.notice import Notice
from sojourn.agent.sync import Keeper, Snapshots
from sojourn.agent.telling import Telling
from sojourn.core.activity import Activity, Doing
from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.data import StoreData
from sojourn.storage.lease import Leases, read_records
from sojourn.storage.logs import LogWriter
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import newest
from sojourn.storage.store import MOST, Store, StoreAddress, open_store
from tests.support.faults import WatchedStore
from tests.support.waiting import until

SIZE = 9 << 20


class Slow(WatchedStore):
    """A store that gives objects one by one, when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.go = threading.Semaphore(0)

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        self._hold(path)
        return super().get(path, most=most)

    def stream(self, path: str):  # type: ignore[no-untyped-def]
        self._hold(path)
        return super().stream(path)

    def get_ranges(self, path: str, ranges):  # type: ignore[no-untyped-def]
        self._hold(path)
        return super().get_ranges(path, ranges)

    def _hold(self, path: str) -> None:
        if "/objects/" in path:
            self.go.acquire()


def test_restoring_is_told(tmp_path: Path) -> None:
    for name in ("store", "from", "to"):
        (tmp_path / name).mkdir()
    for number in range(4):
        (tmp_path / "from" / str(number)).write_bytes(os.urandom(SIZE))
    store = open_store(StoreAddress(f"file://{tmp_path}/store"))
    StoreData(lambda: store, near=True).push(Context(), tmp_path / "from", Filters(), None)
    found = newest(store, layout.WORKDIR)
    assert found
    leases = Leases(store, "vm", 1, ttl=0.2)
    lease = leases.take()
    assert lease
    telling, slow = Telling(), Slow(store)
    keeper = Keeper(leases, lease, Notice(), 0.2, telling)
    keeper.start()

    def restore() -> None:
        entries, sizes = list(found[1].entries.values()), found[1].objects
        Restorer(slow, tmp_path / "to").restore(Context(telling.on_event), entries, sizes)
        telling.restoring = None

    restoring = threading.Thread(target=restore)
    restoring.start()
    try:
        slow.go.release(3)
        until(lambda: (seen := read_records(store, 1)[0].activity) and seen.done)
        seen = read_records(store, 1)[0].activity
    finally:
        slow.go.release(1000)
        restoring.join()
    assert seen
    assert (seen.doing, seen.total) == (Doing.RESTORING, 4 * SIZE)
    assert 0 < seen.done < seen.total
    until(lambda: read_records(store, 1)[0].activity is None)
    keeper.stop()


@pytest.mark.parametrize(
    ("notice", "told"), [(0.0, None), (1e-9, Activity(Doing.SLOW)), (3600.0, None)]
)
def test_snapshots_that_take_longer_than_the_notice_are_told(
    tmp_path: Path, notice: float, told: Activity | None
) -> None:
    for name in ("store", "workdir"):
        (tmp_path / name).mkdir()
    (tmp_path / "workdir" / "file").write_text("x")
    store = open_store(StoreAddress(f"file://{tmp_path}/store"))
    lease = Leases(store, "vm", 1, ttl=60).take()
    assert lease
    telling = Telling()
    telling.restoring = None
    log = LogWriter(store, lease.rank, lease.attempt)
    workdir = tmp_path / "workdir"
    Snapshots(store, lease, log, workdir, Filters(), 10.0, notice, telling).take()
    assert telling.activity == told


def test_what_is_said_of_slow_snapshots() -> None:
    assert "longer than the notice" in Activity(Doing.SLOW).text
    assert Doing.SLOW.trouble
