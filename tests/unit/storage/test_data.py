from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Conflict, InvalidInput, NotFound, Transient
from sojourn.core.events import Event, Warned
from sojourn.core.report import Outcome, Report
from sojourn.core.task import Storage, Task
from sojourn.storage import layout
from sojourn.storage.data import StoreData, load_environment, load_task
from sojourn.storage.lease import Leases
from sojourn.storage.logs import LogWriter
from sojourn.storage.snapshot import newest
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.faults import Fault, FaultyStore, memory_store
from tests.support.seaweed import Seaweed
from tests.support.snapshots import NO_FILTERS, restore, take, writer
from tests.support.trees import read_tree

CTX = Context()
TASK = Task("#!/bin/sh\ntrue", parallelism=2, storage=Storage(workdir=".", output="out"))


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def data(store: Store) -> StoreData:
    return StoreData(lambda: store)


def test_a_store_is_opened_once_and_only_when_needed(store: Store) -> None:
    opened: list[Store] = []

    def open_it() -> Store:
        opened.append(store)
        return store

    data = StoreData(open_it)
    assert opened == []
    data.save(CTX, TASK, {})
    data.load(CTX)
    assert len(opened) == 1


def test_a_task_comes_back_without_its_secrets(store: Store, data: StoreData) -> None:
    task = Task("#!/bin/sh\ntrue", environment={"TOKEN": "secret"})
    data.save(CTX, task, {"TOKEN": "secret"})
    assert data.load(CTX).environment == {"TOKEN": ""}
    assert b"secret" not in bytes(store.get(layout.TASK))
    assert load_environment(store) == {"TOKEN": "secret"}
    assert load_task(store).script == task.script


def test_saving_again_brings_the_newest_environment(store: Store, data: StoreData) -> None:
    data.save(CTX, TASK, {"A": "1"})
    data.save(CTX, TASK, {"A": "2"})
    assert load_environment(store) == {"A": "2"}


def test_another_task_is_a_conflict_and_changes_nothing(store: Store, data: StoreData) -> None:
    data.save(CTX, TASK, {"A": "1"})
    with pytest.raises(Conflict):
        data.save(CTX, Task("#!/bin/sh\nfalse"), {"A": "2"})
    assert data.load(CTX) == TASK
    assert load_environment(store) == {"A": "1"}


def test_a_save_that_broke_off_can_be_repeated_with_another_environment(store: Store) -> None:
    for fault in (Fault.BEFORE, Fault.AFTER):
        for at in range(2):
            faulty = FaultyStore(store, fault, at)
            with pytest.raises(Transient):
                StoreData(lambda faulty=faulty: faulty).save(CTX, TASK, {"A": "old"})  # type: ignore[misc]
            StoreData(lambda: store).save(CTX, TASK, {"A": "new"})
            assert load_environment(store) == {"A": "new"}


def test_nothing_is_loaded_from_an_empty_store(data: StoreData) -> None:
    with pytest.raises(NotFound):
        data.load(CTX)
    assert list(data.logs(CTX, data.cursor())) == []
    assert [record.attempt for record in data.records(CTX, 2)] == [0, 0]
    assert data.reports(CTX) == []


def test_without_a_store_there_is_no_data(tmp_path: Path) -> None:
    data = StoreData(lambda: open_store(StoreAddress(f"file://{tmp_path}/missing")))
    with pytest.raises(NotFound):
        data.load(CTX)
    assert list(data.logs(CTX, data.cursor())) == []
    assert [record.rank for record in data.records(CTX, 2)] == [0, 1]
    assert data.reports(CTX) == []


def test_a_task_of_another_format_is_refused(store: Store, data: StoreData) -> None:
    store.put(layout.TASK, b'{"format": 99, "task": {}}')
    with pytest.raises(Conflict, match="99"):
        data.load(CTX)


def test_a_push_that_changed_nothing_writes_nothing(
    data: StoreData, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"x")
    for _ in range(2):
        data.push(CTX, tmp_path, NO_FILTERS, None)
    assert len(store.list(layout.snapshots_prefix(layout.WORKDIR))) == 1
    (tmp_path / "a").write_bytes(b"y")
    data.push(CTX, tmp_path, NO_FILTERS, None)
    assert len(store.list(layout.snapshots_prefix(layout.WORKDIR))) == 2


def test_pushing_what_is_not_a_folder_is_invalid(data: StoreData, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in ("missing", "file"):
        with pytest.raises(InvalidInput) as caught:
            data.push(CTX, tmp_path / name, NO_FILTERS, None)
        assert caught.value.path == "storage.workdir"


def test_what_snapshots_do_not_hold_is_warned_of(data: StoreData, tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("/etc")
    events: list[Event] = []
    data.push(Context(events.append), tmp_path, NO_FILTERS, None)
    (warning,) = (event.message for event in events if isinstance(event, Warned))
    assert warning.startswith("Not uploading l: ")


@pytest.mark.parametrize(("count", "rest"), [(1, ""), (3, ", 1, 2"), (5, ", 1, 2 and 2 more")])
def test_special_bits_that_are_not_uploaded_are_told_in_one_line(
    data: StoreData, tmp_path: Path, count: int, rest: str
) -> None:
    modes = (0o4755, 0o2755, 0o1644, 0o6755, 0o7777)
    for number, mode in zip(range(count), modes, strict=False):
        (tmp_path / f"{number}").touch()
        (tmp_path / f"{number}").chmod(mode)
    (tmp_path / "plain").touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o2775)
    events: list[Event] = []
    data.push(Context(events.append), tmp_path, NO_FILTERS, None)
    assert [event.message for event in events if isinstance(event, Warned)] == [
        f"Uploaded without their setuid, setgid and sticky bits: 0{rest}"
    ]


def test_a_file_that_keeps_changing_fails_the_push(
    data: StoreData, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.storage.reading._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("sojourn.storage.reading._changed", lambda entry, descriptor: True)
    (tmp_path / "busy").write_bytes(b"x")
    with pytest.raises(InvalidInput, match="busy"):
        data.push(CTX, tmp_path, NO_FILTERS, None)
    assert newest(store, layout.WORKDIR) is None


def test_watching_leaves_a_sign(data: StoreData, store: Store) -> None:
    data.watch(CTX)
    assert store.head(layout.FOLLOW)


def test_the_whole_way_of_the_data_on_s3(seaweed: Seaweed, tmp_path: Path) -> None:
    """A push, two machines that restore, run and report, and a pull, on a real S3 server."""
    store = open_store(seaweed.address("tasks/one"))
    data = StoreData(lambda: store)
    laptop = tmp_path / "laptop"
    (laptop / "out").mkdir(parents=True)
    (laptop / "input").write_bytes(b"data" * 500_000)
    data.save(CTX, TASK, {"A": "1"})
    data.push(CTX, laptop, NO_FILTERS, None)
    for number in range(2):
        leases = Leases(store, f"m{number}", 2, ttl=60)
        lease = leases.take()
        assert lease is not None
        workdir = tmp_path / f"machine-{number}"
        workdir.mkdir()
        pushed = newest(store, layout.WORKDIR)
        assert pushed is not None
        by = writer(store, lease.attempt, lease.rank)
        by.begin(restore(store, pushed[1], workdir))
        assert read_tree(workdir) == read_tree(laptop)
        (workdir / "out/result").write_bytes(b"result %d" % number)
        log = LogWriter(store, lease.rank, lease.attempt)
        log.append(b"hello from %d\n" % number)
        log.flush()
        take(by, workdir)
        by.sweep()
        leases.report(Report(lease.rank, lease.attempt, Outcome.SUCCEEDED, "", 0))
    written = data.pull(CTX, "out", laptop, NO_FILTERS, None)
    assert sorted(written) == ["out/result", "out/result.rank1"]
    assert (laptop / "out/result.rank1").read_bytes() == b"result 1"
    texts = [line.text for line in data.logs(CTX, data.cursor())]
    assert texts == ["hello from 0", "hello from 1"]
    assert all(record.ended for record in data.records(CTX, 2))
    assert len(data.reports(CTX)) == 2
