"""What a machine restores is in its lease while it does."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sojourn.agent.notice import Notice
from sojourn.agent.sync import Keeper
from sojourn.agent.telling import Telling
from sojourn.core.activity import Doing
from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.data import StoreData
from sojourn.storage.lease import Leases, read_records
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import newest
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.faults import WatchedStore
from tests.support.waiting import until

SIZE = 9 << 20


class Slow(WatchedStore):
    """A store that gives objects one by one, when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.go = threading.Semaphore(0)

    def get(self, path: str) -> memoryview:
        self._hold(path)
        return super().get(path)

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
