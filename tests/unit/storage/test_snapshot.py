from __future__ import annotations

import errno
import mmap
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, Conflict
from sojourn.core.events import Event, Progress
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.manifest import Manifest
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import Buffer, Store, StoreAddress, open_store
from tests.support.faults import WatchedStore, memory_store
from tests.support.snapshots import (
    NO_FILTERS,
    line_of,
    loose_objects,
    missing_objects,
    refuse,
    restore,
    snapshots,
    take,
    writer,
)
from tests.support.trees import Dir, File, read_tree, write_tree

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(memory_store())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def object_puts(store: WatchedStore) -> list[str]:
    return [path for path in store.put_paths if "/objects/" in path]


def whole(store: Store, rank: int = 0) -> Manifest:
    manifest = newest_of_rank(store, rank)
    assert manifest is not None
    assert missing_objects(store, manifest) == set()
    return manifest


def test_an_empty_folder_is_a_snapshot(store: WatchedStore, root: Path) -> None:
    assert take(writer(store), root)
    assert whole(store).entries == {}


def test_a_folder_that_is_not_there_is_not_an_empty_one(store: WatchedStore, root: Path) -> None:
    for number in range(10):
        (root / str(number)).write_bytes(b"%d" % number * 50)
    by = writer(store)
    take(by, root)
    for number in range(1, 10):  # leaves a pack that is mostly unused
        (root / str(number)).unlink()
    take(by, root)
    (root / "0").unlink()
    root.rmdir()
    told: dict[str, bool] = {}

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        told[path] = lost

    assert not by.take(Context(), root, NO_FILTERS, skipped=skipped)
    assert told == {".": True}
    assert list(whole(store).entries) == ["0"]


@pytest.mark.parametrize("unreadable", ["d", "."])
def test_a_folder_that_cannot_be_read_stays_as_it_was(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    write_tree(root, {"a": File(b"1"), "d": Dir(), "d/e": Dir(), "d/e/f": File(b"2"), "d2": Dir()})
    by = writer(store)
    take(by, root)
    before = whole(store)
    told: dict[str, bool] = {}

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        told[path] = lost

    real = os.scandir

    def scandir(folder: int) -> Any:
        if os.path.samestat(os.fstat(folder), os.stat(root / unreadable)):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(folder)

    (root / "a").write_bytes(b"3")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        by.take(Context(), root, NO_FILTERS, skipped=skipped)
    assert told == {unreadable: True}
    assert whole(store).entries.keys() == before.entries.keys()
    assert whole(store).entries["d/e/f"].parts == before.entries["d/e/f"].parts
    take(by, root)
    assert whole(store).entries["a"].parts != before.entries["a"].parts


class _Hidden:
    """A file that is listed, but cannot be looked at."""

    def __init__(self, item: os.DirEntry[str], error: int) -> None:
        self.name = item.name
        self.is_dir = item.is_dir
        self._error = error

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        raise OSError(self._error, os.strerror(self._error))


@pytest.mark.parametrize("hidden", ["f", "d"])
@pytest.mark.parametrize("error", [errno.EACCES, errno.ENOENT])
def test_what_cannot_be_looked_at_is_kept_and_what_is_gone_is_not(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch, hidden: str, error: int
) -> None:
    write_tree(
        root, {"f": File(b"1"), "f2": File(b"2"), "d": Dir(), "d/x": File(b"3"), "d2": Dir()}
    )
    by = writer(store)
    take(by, root)
    before = whole(store)
    told: dict[str, bool] = {}

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        told[path] = lost

    real = os.scandir

    def scandir(folder: Path) -> Any:
        return [_Hidden(item, error) if item.name == hidden else item for item in real(folder)]

    (root / "f2").write_bytes(b"changed")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        by.take(Context(), root, NO_FILTERS, skipped=skipped)
    after = whole(store)
    below = {path for path in before.entries if path == hidden or path.startswith(f"{hidden}/")}
    if error == errno.ENOENT:
        assert told == {}
        assert after.entries.keys() == before.entries.keys() - below
        return
    assert told == {hidden: True}
    assert after.entries.keys() == before.entries.keys()
    for path in below:
        assert after.entries[path] == before.entries[path]
    assert after.entries["f2"].parts != before.entries["f2"].parts


def test_there_is_no_newest_of_an_empty_line(store: WatchedStore) -> None:
    assert newest(store, line_of()) is None
    assert newest_of_rank(store, 0) is None


def test_nothing_is_written_when_nothing_changed(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"x")
    by = writer(store)
    assert take(by, root)
    store.put_paths.clear()
    assert not take(by, root)
    assert store.put_paths == []


def test_a_changed_mode_costs_only_a_manifest(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"x" * 1000)
    by = writer(store)
    take(by, root)
    store.put_paths.clear()
    (root / "a").chmod(0o600)
    assert take(by, root)
    assert store.put_paths == [layout.snapshot_path(line_of(), 2)]
    assert whole(store).entries["a"].mode == 0o600


def test_the_same_content_is_stored_once(store: WatchedStore, root: Path) -> None:
    for name in "abcd":
        (root / name).write_bytes(b"same" * 5)
        (root / f"big {name}").write_bytes(b"large" * 60)
    take(SnapshotWriter(store, line_of(), base=layout.WORKDIR, workers=1), root)
    assert len(object_puts(store)) == 3


def test_a_changed_chunk_costs_only_that_chunk(store: WatchedStore, root: Path) -> None:
    content = bytearray(os.urandom(2560))
    (root / "a").write_bytes(content)
    by = writer(store)
    take(by, root)
    store.put_paths.clear()
    content[700] ^= 1
    (root / "a").write_bytes(content)
    take(by, root)
    assert len(object_puts(store)) == 1


def test_a_moved_file_costs_nothing(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"small")
    (root / "b").write_bytes(b"large" * 100)
    by = writer(store)
    take(by, root)
    store.put_paths.clear()
    (root / "a").rename(root / "c")
    (root / "b").rename(root / "d")
    assert take(by, root)
    assert object_puts(store) == []


def test_a_file_replaced_by_another_of_the_same_size_and_time_is_noticed(
    store: WatchedStore, root: Path
) -> None:
    write_tree(root, {"a": File(b"one")})
    by = writer(store)
    take(by, root)
    write_tree(root, {"b": File(b"two")})
    (root / "b").replace(root / "a")
    assert take(by, root)
    assert whole(store).entries["a"].parts[0].digest != ""
    restored = root.parent / "restored"
    restored.mkdir()
    restore(store, whole(store), restored)
    assert (restored / "a").read_bytes() == b"two"


def _mapped(path: Path) -> mmap.mmap:
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 4096)


def test_what_was_written_through_a_mapping_is_in_the_last_snapshot(
    store: WatchedStore, root: Path
) -> None:
    by = writer(store)
    with _mapped(root / "array") as memory:
        memory[:5] = b"first"
        take(by, root)
        before = (root / "array").stat()
        memory[:5] = b"final"
        after = (root / "array").stat()
    assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    assert not take(by, root)
    assert by.take(Context(), root, NO_FILTERS, skipped=refuse, last=True)
    root.with_name("back").mkdir()
    restore(store, whole(store), root.with_name("back"))
    assert (root.with_name("back") / "array").read_bytes()[:5] == b"final"


def test_what_was_read_young_is_read_once_more_when_it_has_settled(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = writer(store)
    with _mapped(root / "array") as memory:
        memory[:5] = b"first"
        take(by, root)
        memory[:5] = b"final"
    monkeypatch.setattr("sojourn.storage.snapshot._SETTLED", 0)
    assert take(by, root)
    calls = len(store.calls)
    assert not take(by, root)
    assert len(store.calls) == calls


def test_excluded_and_ignored_files_are_left_out(store: WatchedStore, root: Path) -> None:
    for name in ("keep", "drop.log", "ignored", ".sojourn-0123456789abcdef.part"):
        (root / name).write_bytes(b"x")
    writer(store).take(
        Context(),
        root,
        Filters(["*.log"]),
        ignore=lambda path, folder: path == "ignored" and not folder,
        skipped=refuse,
    )
    assert list(whole(store).entries) == ["keep"]


def test_progress_is_told_up_to_the_total(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"x" * 1000)
    (root / "b").write_bytes(b"y" * 10)
    events: list[Event] = []
    writer(store).take(Context(events.append), root, NO_FILTERS, skipped=refuse, step="Up")
    told = [event for event in events if isinstance(event, Progress)]
    assert told[-1] == Progress("Up", 1010, 1010)


def test_a_cancelled_snapshot_writes_no_manifest(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"x" * 5000)
    ctx = Context()
    ctx.cancel()
    with pytest.raises(Cancelled):
        writer(store).take(ctx, root, NO_FILTERS, skipped=refuse)
    assert newest_of_rank(store, 0) is None


def test_old_snapshots_are_swept_and_two_are_kept(store: WatchedStore, root: Path) -> None:
    by = writer(store)
    for number in range(5):
        (root / "a").write_bytes(b"%d" % number * 300)
        take(by, root)
        by.sweep()
    assert list(snapshots(store, line_of())) == [4, 5]
    assert loose_objects(store, line_of()) == set()


def test_sweeping_before_the_first_snapshot_keeps_what_was_brought_home(
    store: WatchedStore, root: Path
) -> None:
    (root / "a").write_bytes(b"x" * 300)
    take(writer(store, 1), root)
    by = writer(store, 2)
    by.begin(whole(store))
    by._bring_home(Context())
    by.sweep()
    take(by, root)
    assert whole(store).objects


def test_sweeping_after_a_new_writer_found_nothing_changed_keeps_the_snapshot(
    store: WatchedStore, root: Path
) -> None:
    write_tree(root, {"a": File(b"x" * 300)})
    take(writer(store), root)
    by = writer(store)
    by.begin(whole(store), 1)
    (root / "a").unlink()
    write_tree(root, {"a": File(b"x" * 300)})  # another inode, so that it is read again
    os.utime(root, ns=(0, whole(store).entries["a"].mtime))
    take(by, root)
    by.sweep()
    whole(store)


def test_a_pack_that_is_mostly_unused_is_packed_anew(store: WatchedStore, root: Path) -> None:
    for number in range(10):
        (root / str(number)).write_bytes(b"%d" % number * 50)
    by = writer(store)
    take(by, root)
    for number in range(1, 10):
        (root / str(number)).unlink()
    take(by, root)
    (root / "0").chmod(0o600)
    take(by, root)
    by.sweep()
    take(by, root)
    by.sweep()
    assert sum(whole(store).objects.values()) == 50


def test_many_tiny_packs_become_one(store: WatchedStore, root: Path) -> None:
    by = writer(store)
    for number in range(40):
        (root / str(number)).write_bytes(b"%d" % number)
        take(by, root)
        by.sweep()
        assert len(whole(store).objects) <= 34
    assert loose_objects(store, line_of()) == set()


def test_of_two_writers_of_one_line_one_wins_each_number(
    store: WatchedStore, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (root / "a").write_bytes(b"one" * 100)
    (other / "a").write_bytes(b"two" * 100)
    outcomes: list[str] = []
    start = threading.Barrier(2)

    def race(folder: Path) -> None:
        by = writer(store)
        start.wait()
        try:
            take(by, folder)
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")

    threads = [threading.Thread(target=race, args=(folder,)) for folder in (root, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost", "won"]
    into = tmp_path / "restored"
    into.mkdir()
    restore(store, whole(store), into)
    assert read_tree(into) in (read_tree(root), read_tree(other))


def test_the_loser_goes_on_from_what_the_winner_wrote(store: WatchedStore, root: Path) -> None:
    (root / "a").write_bytes(b"one" * 100)
    winner, loser = writer(store), writer(store)
    take(winner, root)
    (root / "a").write_bytes(b"two" * 100)
    with pytest.raises(Conflict):
        take(loser, root)
    winner.sweep()
    for content in (b"three", b"four", b"five"):
        (root / "a").write_bytes(content * 100)
        take(winner, root)
        winner.sweep()
    store.delete(list(loose_objects(store, line_of())))
    (root / "a").write_bytes(b"two" * 100)
    found = newest(store, line_of())
    assert found is not None
    loser.begin(found[1], found[0])
    assert take(loser, root)
    whole(store)


def test_a_zombie_never_damages_the_newest_snapshot(
    store: WatchedStore, root: Path, tmp_path: Path
) -> None:
    """A former attempt goes on, snapshots and sweeps, while newer attempts do as well."""
    folders = [root]
    (root / "a").write_bytes(b"start" * 100)
    (root / "s").write_bytes(b"start")
    writers = [writer(store, 1)]
    take(writers[0], root)
    for attempt in range(2, 5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        by = writer(store, attempt)
        by.begin(restore(store, whole(store), folder))
        for turn in range(3):
            for zombie, place in zip(writers, folders, strict=True):
                (place / f"z{turn}").write_bytes(b"zombie %d" % turn * attempt * 30)
                (place / "s").write_bytes(b"%d%d" % (turn, attempt))
                take(zombie, place)
                zombie.sweep()
                whole(store)
            (folder / "a").write_bytes(b"%d %d" % (attempt, turn) * 100)
            take(by, folder)
            by.sweep()
            _sweep_former(store, attempt)
            newest_now = whole(store)
            assert all(path.startswith(line_of(attempt)) for path in newest_now.objects)
        writers.append(by)
        folders.append(folder)


def _sweep_former(store: Store, attempt: int) -> None:
    for former in range(1, attempt):
        for prefix in (layout.snapshots_prefix, layout.objects_prefix):
            store.delete([item.path for item in store.list(prefix(line_of(former)))])


def test_what_a_zombie_swept_before_it_was_brought_home_is_read_from_the_disk(
    store: WatchedStore, root: Path, tmp_path: Path
) -> None:
    write_tree(root, {"a": File(b"1" * 300), "b": File(b"2" * 20), "c": File(b"")})
    take(writer(store, 1), root)
    folder = tmp_path / "second"
    folder.mkdir()
    by = writer(store, 2)
    by.begin(restore(store, whole(store), folder))
    _sweep_former(store, 2)
    assert take(by, folder)
    into = tmp_path / "restored"
    into.mkdir()
    restore(store, whole(store), into)
    assert read_tree(into) == read_tree(folder)


def test_objects_of_the_base_stay_where_they_are(
    store: WatchedStore, root: Path, tmp_path: Path
) -> None:
    write_tree(root, {"a": File(b"1" * 300), "b": File(b"2" * 20)})
    take(SnapshotWriter(store, layout.WORKDIR), root)
    pushed = newest(store, layout.WORKDIR)
    assert pushed is not None
    folder = tmp_path / "machine"
    folder.mkdir()
    by = writer(store)
    by.begin(restore(store, pushed[1], folder))
    (folder / "new").touch()
    store.put_paths.clear()
    take(by, folder)
    by.sweep()
    assert object_puts(store) == []
    assert all(path.startswith("workdir/") for path in whole(store).objects)
    assert missing_objects(store, pushed[1]) == set()


def test_a_put_that_takes_its_time_sees_the_bytes_of_the_scan(
    store: WatchedStore, root: Path
) -> None:
    """The buffers that are on their way must not be those that are filled meanwhile."""
    for number in range(100):
        (root / str(number)).write_bytes(b"%03d" % number * 20)

    class Slow(WatchedStore):
        def put(self, path: str, data: Buffer) -> None:
            before = bytes(data)
            threading.Event().wait(0.01)
            assert bytes(data) == before
            super().put(path, data)

    slow = Slow(store)
    take(writer(slow), root)
    whole(slow)


def test_objects_are_on_the_disk_before_the_manifest_that_needs_them(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    store = open_store(StoreAddress(f"file://{folder}"))
    (root / "small").write_bytes(b"x")
    (root / "large").write_bytes(os.urandom(5000))
    kept: list[set[str]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        manifests = {item.path for item in store.list(layout.snapshots_prefix(line_of()))}
        if path.is_file():
            kept.append({str(path.relative_to(folder))} | manifests)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    take(writer(store), root)
    manifest = layout.snapshot_path(line_of(), 1)
    objects = {frozenset({item.path}) for item in store.list(layout.objects_prefix(line_of()))}
    assert objects
    assert {frozenset(moment) for moment in kept[:-1]} == objects  # no manifest was there yet
    assert kept[-1] == {manifest}
