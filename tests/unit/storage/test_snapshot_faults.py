"""A fault at any call of the store, of any kind, costs no snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.manifest import Manifest
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import Store
from tests.support.faults import Crash, Fault, FaultyStore, memory_store
from tests.support.snapshots import (
    line_of,
    loose_objects,
    missing_objects,
    restore,
    snapshots,
    take,
    writer,
)
from tests.support.trees import File, Tree, read_tree, rewrite_tree, write_tree

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

every_fault = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())

OLDEST: Tree = {"a": File(b"0" * 30), "b": File(b"0" * 31), "big": File(b"0" * 600)}
FIRST: Tree = {"a": File(b"1" * 30), "b": File(b"2" * 30), "big": File(b"3" * 600)}
SECOND: Tree = {"a": File(b"4" * 30), "b": File(b"2" * 30), "big": File(b"3" * 256 + b"5" * 344)}
THIRD: Tree = {"b": File(b"6" * 31), "c": File(b"7" * 70)}


def at_every_call() -> Iterator[int]:
    return iter(range(200))


def whole(store: Store, manifest: Manifest | None, into: Path) -> dict[str, Any]:
    """Restore a snapshot to see that it is whole."""
    assert manifest is not None
    assert missing_objects(store, manifest) == set()
    into.mkdir()
    restore(store, manifest, into)
    return read_tree(into)


def attempted(work: Any) -> bool:
    """Do it; False if it failed."""
    try:
        work()
    except (Transient, Crash):
        return False
    return True


@every_fault
def test_a_fault_while_a_snapshot_is_taken_and_swept(fault: Fault, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for at in at_every_call():
        store = memory_store()
        root.mkdir()
        write_tree(root, OLDEST)
        by = writer(store)
        take(by, root)
        rewrite_tree(root, OLDEST, FIRST)
        take(by, root)
        first = read_tree(root)
        rewrite_tree(root, FIRST, SECOND)
        second = read_tree(root)
        faulty = FaultyStore(store, fault, at)
        by._store = by._upload._store = faulty

        def snapshot(by: SnapshotWriter = by) -> None:
            take(by, root)
            by.sweep()

        went_well = attempted(snapshot)
        faulty.heal()
        found = whole(store, newest_of_rank(store, 0), tmp_path / f"after-{at}")
        assert found in (first, second)
        assert faulty.violations == []
        if fault.crash and not went_well:
            _converges_by_a_new_attempt(store, tmp_path / f"attempt-{at}")
        else:
            _converges_by_the_same_writer(store, by, root, tmp_path / f"again-{at}")
        for path in root.iterdir():
            path.unlink()
        root.rmdir()
        if not faulty.struck:
            assert went_well
            assert faulty.calls[-2:] == ["delete", "delete"]
            return
    pytest.fail("the calls did not come to an end")


def _converges_by_a_new_attempt(store: Store, folder: Path) -> None:
    folder.mkdir()
    last = newest_of_rank(store, 0)
    assert last is not None
    by = writer(store, 2)
    by.begin(restore(store, last, folder))
    rewrite_tree(folder, {**FIRST, **SECOND}, THIRD)
    assert take(by, folder)
    by.sweep()
    store.delete([item.path for item in store.list(line_of(1))])
    expected = read_tree(folder)
    assert whole(store, newest_of_rank(store, 0), folder / "whole") == expected
    assert loose_objects(store, line_of(2)) == set()


def _converges_by_the_same_writer(
    store: Store, by: SnapshotWriter, root: Path, folder: Path
) -> None:
    rewrite_tree(root, SECOND, THIRD)
    for _ in range(3):
        take(by, root)
        by.sweep()
        (root / "b").write_bytes(b"again" + (root / "b").read_bytes())
    take(by, root)
    by.sweep()
    folder.mkdir()
    assert whole(store, newest_of_rank(store, 0), folder / "whole") == read_tree(root)
    kept = snapshots(store, line_of())
    assert not any(missing_objects(store, manifest) for manifest in kept.values())
    assert len(kept) == 2
    assert loose_objects(store, line_of()) == set()


@every_fault
def test_a_fault_while_a_new_attempt_brings_its_objects_home(fault: Fault, tmp_path: Path) -> None:
    for at in at_every_call():
        store = memory_store()
        source, root = tmp_path / f"source-{at}", tmp_path / f"root-{at}"
        source.mkdir()
        root.mkdir()
        write_tree(source, FIRST)
        take(writer(store), source)
        first = newest_of_rank(store, 0)
        assert first is not None
        faulty = FaultyStore(store, fault, at)
        by = writer(faulty, 2)
        by.begin(restore(store, first, root))
        rewrite_tree(root, FIRST, SECOND)

        def snapshot(by: SnapshotWriter = by, root: Path = root) -> None:
            take(by, root)
            by.sweep()

        went_well = attempted(snapshot)
        faulty.heal()
        found = whole(store, newest_of_rank(store, 0), tmp_path / f"after-{at}")
        assert found in (read_tree(source), read_tree(root))
        if fault.crash and not went_well:
            _converges_by_a_new_attempt_of(store, 3, tmp_path / f"attempt-{at}")
        else:
            by.sweep()
            take(by, root)
            by.sweep()
            found = whole(store, newest_of_rank(store, 0), tmp_path / f"again-{at}")
            assert found == read_tree(root)
        assert faulty.violations == []
        if not faulty.struck:
            return
    pytest.fail("the calls did not come to an end")


def _converges_by_a_new_attempt_of(store: Store, attempt: int, folder: Path) -> None:
    folder.mkdir()
    last = newest_of_rank(store, 0)
    assert last is not None
    by = writer(store, attempt)
    by.begin(restore(store, last, folder))
    (folder / "more").touch()
    assert take(by, folder)
    for former in range(1, attempt):
        store.delete([item.path for item in store.list(line_of(former))])
    expected = read_tree(folder)
    assert whole(store, newest_of_rank(store, 0), folder / "whole") == expected


@every_fault
def test_a_fault_while_a_workdir_is_pushed(fault: Fault, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    write_tree(root, FIRST)
    for at in at_every_call():
        store = memory_store()
        faulty = FaultyStore(store, fault, at)
        attempted(lambda faulty=faulty: take(SnapshotWriter(faulty, layout.WORKDIR), root))
        by = SnapshotWriter(store, layout.WORKDIR)
        number, manifest = newest(store, layout.WORKDIR) or (0, Manifest())
        by.begin(manifest, number)
        take(by, root)
        last = newest(store, layout.WORKDIR)
        assert last is not None
        assert whole(store, last[1], tmp_path / f"after-{at}") == read_tree(root)
        if not faulty.struck:
            return
    pytest.fail("the calls did not come to an end")


def test_an_interrupted_upload_resumes(tmp_path: Path) -> None:
    write_tree(tmp_path, {name: File(name.encode() * 300) for name in "abcdefgh"})
    store = memory_store()
    crashed = FaultyStore(store, Fault.CRASH_BEFORE, 5, kinds=frozenset({"put"}))
    with pytest.raises(Crash):
        take(writer(crashed), tmp_path)
    there = {item.path for item in store.list(layout.objects_prefix(line_of()))}
    assert there
    resumed = FaultyStore(store, Fault.BEFORE, -1)
    take(writer(resumed), tmp_path)
    assert there.isdisjoint(resumed.put_paths)


def test_what_a_power_cut_left_without_its_bytes_is_stored_again(tmp_path: Path) -> None:
    store = memory_store()
    (tmp_path / "root").mkdir()
    write_tree(tmp_path / "root", FIRST)
    take(writer(store), tmp_path / "root")
    store.delete([layout.snapshot_path(line_of(), 1)])  # the cut came before the manifest
    for length, item in enumerate(store.list(layout.objects_prefix(line_of()))):
        store.put(item.path, bytes(length))
    take(writer(store), tmp_path / "root")
    back = whole(store, newest_of_rank(store, 0), tmp_path / "back")
    assert back == read_tree(tmp_path / "root")


def test_a_manifest_whose_answer_was_lost_is_not_in_the_way(tmp_path: Path) -> None:
    store = memory_store()
    write_tree(tmp_path, FIRST)
    by = writer(FaultyStore(store, Fault.AFTER, 0, kinds=frozenset({"put_new"})))
    with pytest.raises(Transient):
        take(by, tmp_path)
    rewrite_tree(tmp_path, FIRST, SECOND)
    assert take(by, tmp_path)
    assert list(snapshots(store, line_of())) == [1, 2]


def test_a_manifest_whose_answer_was_lost_counts_as_taken_by_the_next_call(tmp_path: Path) -> None:
    store = memory_store()
    write_tree(tmp_path, FIRST)
    by = writer(FaultyStore(store, Fault.AFTER, 0, kinds=frozenset({"put_new"})))
    with pytest.raises(Transient):
        take(by, tmp_path)
    assert take(by, tmp_path)
    assert not take(by, tmp_path)
    assert list(snapshots(store, line_of())) == [1]


def test_a_snapshot_that_is_always_swept_in_time_is_an_error_and_not_nothing(
    tmp_path: Path,
) -> None:
    store = memory_store()
    write_tree(tmp_path, FIRST)
    take(writer(store), tmp_path)

    class Fleeting(FaultyStore):
        def get(self, path: str, *, most: int = 0) -> memoryview:
            raise NotFound(path)

    fleeting = Fleeting(store, Fault.BEFORE, -1)
    with pytest.raises(Transient):
        newest(fleeting, line_of())
    with pytest.raises(Transient):
        newest_of_rank(fleeting, 0)
