"""Pulling from stores that are damaged or in motion, and to disks that are full."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import random
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError, QuotaError, Transient
from sojourn.core.events import Note
from sojourn.storage import layout
from sojourn.storage.digest import digest_of
from sojourn.storage.ranks import newest_of_rank, snapshots_of_rank
from sojourn.storage.store import Store
from tests.support.disks import small_disk
from tests.support.faults import memory_store
from tests.support.manifests import file_row, folder_row, link_row, raw_manifest
from tests.support.snapshots import line_of, restore, take, writer
from tests.support.trees import Dir, File, Link, Node, read_tree
from tests.unit.storage.home import NEW, OLD, Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")


BAD_ROWS = {
    "up": [file_row("../x")],
    "absolute": [file_row("/tmp/sojourn-escaped")],
    "inner up": [folder_row("out"), file_row("out/../../x")],
    "below a link": [folder_row("out"), link_row("out/l", "."), file_row("out/l/x")],
    "link out": [folder_row("out"), link_row("out/l", "../../d")],
    "link by a detour": [folder_row("out"), link_row("out/l", "a/../../../d")],
    "twice": [folder_row("out"), link_row("out/a", "b"), file_row("out/a")],
}


@pytest.mark.parametrize("rows", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_manifest_that_would_do_harm_writes_nothing(home: Home, rows: list[object]) -> None:
    home.ranks = 1
    home.store.put(layout.snapshot_path(line_of(), 1), raw_manifest(rows))
    before = read_tree(home.into.parent)
    with pytest.raises(IntegrityError):
        home.pull(".")
    assert read_tree(home.into.parent) == before
    assert not os.path.lexists("/tmp/sojourn-escaped")


@pytest.mark.parametrize("when", [OLD - 1, OLD, NEW + 1], ids=["older", "as old", "newer"])
def test_a_damaged_manifest_of_what_was_pushed_does_not_hold_up_results(
    home: Home, when: int
) -> None:
    home.push({"out": Dir(), "out/pushed": File(b"pushed", mtime=OLD)})
    home.rank({"out": Dir(), "out/pushed": File(b"pushed", mtime=OLD), "out/a": new(b"a")})
    home.rank({"out": Dir(), "out/pushed": new(b"changed")})
    home.store.put(layout.snapshot_path(layout.WORKDIR, 2), b"damaged")
    write_tree_at(home.into, {"out/pushed": File(b"mine", mtime=when)})
    home.pull()
    assert sorted(home.files().values()) == [b"a", b"changed", b"mine", b"pushed"]
    assert "uploaded" in home.warnings[0]
    assert "pushed.local" in home.warnings[-1]
    assert home.pull() == []


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    with small_disk(home.into, "1m"):
        yield home


def test_a_full_disk_is_told_and_a_repeat_after_freeing_space_succeeds(full: Home) -> None:
    dice = random.Random(3)
    tree: dict[str, Node] = {"out": Dir()}
    tree |= {f"out/{number}": new(dice.randbytes(90_000)) for number in range(8)}
    full.rank(tree)
    (full.into / "ballast").write_bytes(bytes(500_000))
    with pytest.raises(QuotaError):
        full.pull()
    assert not [path for path in full.into.rglob("*") if path.name.endswith(".part")]
    done = set(os.listdir(full.into / "out"))
    assert done
    (full.into / "ballast").unlink()
    again = full.pull()
    assert {f"out/{name}" for name in done}.isdisjoint(again)
    assert full.files() == {p: node.content for p, node in tree.items() if isinstance(node, File)}


def test_two_pulls_at_once_do_not_disturb_each_other(home: Home) -> None:
    tree: dict[str, Node] = {"out": Dir()}
    tree |= {f"out/{number}": new(b"%d" % number * 100) for number in range(60)}
    home.rank(tree)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            home.pull()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert home.files() == {p: node.content for p, node in tree.items() if isinstance(node, File)}
    assert home.warnings == []


def test_a_pull_waits_for_another_one(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a")})
    home.into.mkdir()
    held = os.open(home.into, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    thread = threading.Thread(target=home.pull)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert not (home.into / "out").exists()
    assert [event for event in home.events if isinstance(event, Note)]
    os.close(held)
    thread.join(10)
    assert home.files() == {"out/a": b"a"}


def test_a_snapshot_swept_while_it_is_read_is_given_up_for_the_next(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1" * 300)})
    real = home.store.stream
    swept: list[str] = []

    def stream(path: str) -> Iterator[memoryview]:
        if not swept:
            swept.append(path)
            home.update(0, {"out": Dir(), "out/a": new(b"2" * 300)})
            home.store.delete([layout.snapshot_path(line_of(), 1), path])
        return real(path)

    home.store.stream = stream  # type: ignore[method-assign]
    home.pull()
    assert swept
    assert home.files() == {"out/a": b"2" * 300}


def test_an_object_that_is_gone_is_named_and_the_rest_can_be_had(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree: dict[str, Node] = {"out": Dir(), "out/a": new(b"1" * 200), "out/b": new(b"2" * 200)}
    home.rank(tree)
    monkeypatch.setattr(Context, "sleep", lambda self, seconds: None)
    manifest = newest_of_rank(home.store, 0)
    assert manifest is not None
    gone = manifest.entries["out/b"].parts[0].object
    home.store.delete([gone])
    with pytest.raises(IntegrityError, match=gone):
        home.pull()
    home.pull("out/a")
    assert home.files() == {"out/a": b"1" * 200}


def test_snapshots_that_are_swept_at_each_try_are_transient(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.ranks = 1
    numbers = itertools.count(1)

    def write(*_: object) -> None:
        # Its object is not there: a sweep took it.
        path = layout.snapshot_path(line_of(), next(numbers))
        home.store.put(path, raw_manifest([file_row("a")]))

    write()
    monkeypatch.setattr(Context, "sleep", write)
    with pytest.raises(Transient):
        home.pull(".")


def test_the_newest_attempt_counts_whatever_the_numbers_of_its_snapshots(tmp_path: Path) -> None:
    store = memory_store()
    folder = tmp_path / "root"
    folder.mkdir()
    by = writer(store, 1)
    for content in (b"1", b"2", b"3"):
        (folder / "a").write_bytes(content)
        take(by, folder)
    (folder / "a").write_bytes(b"newest")
    take(writer(store, 10), folder)
    (folder / "a").write_bytes(b"zombie")
    take(by, folder)
    take(writer(store, 99, rank=1), folder)
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    (tmp_path / "restored").mkdir()
    restore(store, manifest, tmp_path / "restored")
    assert (tmp_path / "restored/a").read_bytes() == b"newest"


def _three_snapshots(store: Store, folder: Path) -> None:
    """Two of attempt 1, one of attempt 2; the file says which."""
    folder.mkdir()
    for attempt, contents in ((1, (b"1-1", b"1-2")), (2, (b"2-1",))):
        by = writer(store, attempt)
        for content in contents:
            (folder / "a").write_bytes(content)
            take(by, folder)


def test_snapshots_are_listed_with_the_newest_first(tmp_path: Path) -> None:
    store = memory_store()
    assert snapshots_of_rank(store, 0) == []
    _three_snapshots(store, tmp_path / "root")
    assert snapshots_of_rank(store, 0) == [
        layout.snapshot_path(line_of(2), 1),
        layout.snapshot_path(line_of(1), 2),
        layout.snapshot_path(line_of(1), 1),
    ]


@pytest.mark.parametrize(
    ("damaged", "left"),
    [([], b"2-1"), ([(2, 1)], b"1-2"), ([(2, 1), (1, 2)], b"1-1"), ([(1, 2)], b"2-1")],
)
def test_a_damaged_manifest_gives_way_to_the_one_before(
    tmp_path: Path, damaged: list[tuple[int, int]], left: bytes
) -> None:
    store = memory_store()
    _three_snapshots(store, tmp_path / "root")
    for attempt, number in damaged:
        store.put(layout.snapshot_path(line_of(attempt), number), b"")
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    (tmp_path / "restored").mkdir()
    restore(store, manifest, tmp_path / "restored")
    assert (tmp_path / "restored/a").read_bytes() == left


def test_whoever_gets_the_snapshot_before_a_damaged_one_is_told(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"whole")})
    home.store.put(layout.snapshot_path(line_of(), 2), b"damaged")
    home.pull()
    assert home.files() == {"out/a": b"whole"}
    [warning] = home.warnings
    assert "Using an earlier snapshot instead" in warning


def test_nothing_but_damaged_manifests_is_not_nothing(tmp_path: Path) -> None:
    store = memory_store()
    _three_snapshots(store, tmp_path / "root")
    for path in snapshots_of_rank(store, 0):
        store.put(path, b"")
    with pytest.raises(IntegrityError):
        newest_of_rank(store, 0)


class Disk:
    """What was flushed: paths by their inodes, and how often all of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inodes: set[int] = set()
        self.syncs = 0
        self.error = 0
        monkeypatch.setattr(os, "fsync", self._fsync)
        monkeypatch.setattr(os, "sync", self._sync)

    def has(self, *paths: Path) -> bool:
        return all(os.lstat(path).st_ino in self.inodes for path in paths)

    def _fsync(self, descriptor: int) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        self.inodes.add(os.fstat(descriptor).st_ino)

    def _sync(self) -> None:
        self.syncs += 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_results_are_on_the_disk_when_they_are_home(home: Home, disk: Disk) -> None:
    home.rank(
        {
            "out": Dir(),
            "out/a": new(b"small"),
            "out/b": new(b"large" * 100),
            "out/l": Link("a"),
            "out/empty": Dir(),
        }
    )
    home.into = home.into / "new" / "folder"
    home.pull()
    out = home.into / "out"
    assert disk.has(out / "a", out / "b", out, out / "empty")
    assert disk.has(home.into, home.into.parent, home.into.parent.parent, home.into.parents[2])
    assert disk.syncs == 0


def test_many_results_go_to_the_disk_at_once(home: Home, disk: Disk) -> None:
    home.rank({"out": Dir()} | {f"out/{number}": new(b"1") for number in range(100)})
    home.pull()
    assert (disk.inodes, disk.syncs) == (set(), 1)


def test_what_a_killed_pull_has_written_goes_to_the_disk_as_well(home: Home, disk: Disk) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a")})
    home.pull()
    disk.inodes.clear()
    assert home.pull() == []
    assert disk.has(home.into / "out/a", home.into / "out")


def test_what_is_no_result_is_left_to_the_system(home: Home, disk: Disk) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": File(b"pushed"), "out/b": new(b"b")})
    write_tree_at(home.into, {"out/a": File(b"mine")})
    home.pull()
    assert disk.has(home.into / "out/b")
    assert not disk.has(home.into / "out/a")


@pytest.mark.parametrize(
    ("number", "raised"), [(errno.EIO, OSError), (errno.ENOSPC, QuotaError)], ids=["I/O", "full"]
)
def test_a_disk_that_does_not_take_results_is_told(
    home: Home, disk: Disk, number: int, raised: type[Exception]
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a")})
    disk.error = number
    with pytest.raises(raised):
        home.pull()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES])
def test_a_file_that_cannot_be_flushed_singly_is_flushed_with_all(
    home: Home, disk: Disk, number: int
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a")})
    disk.error = number
    assert home.pull() == ["out/a"]
    assert disk.syncs == 1


@pytest.mark.parametrize("name", ["²", "1", "00000002x", "0000000²", "x/00000009", "-0000001"])
def test_what_is_not_named_like_a_snapshot_is_none(home: Home, name: str) -> None:
    home.rank({"out": Dir(), "out/a": new(b"whole")})
    for line in (layout.WORKDIR, line_of()):
        home.store.put(f"{layout.snapshots_prefix(line)}/{name}", b"[" * 60_000)
    home.pull()
    assert home.files() == {"out/a": b"whole"}
    assert home.warnings == []


def test_an_object_that_became_larger_is_not_fetched(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"abc")})
    [item] = home.store.list(layout.objects_prefix(line_of()))
    home.store._inner.put(item.path, b"abc" + bytes(50 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(IntegrityError, match="too large"):
            home.pull()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_manifest_that_is_too_large_is_not_fetched(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"whole")})
    monkeypatch.setattr("sojourn.storage.manifest._LARGEST", 1 << 20)
    home.store.put(layout.snapshot_path(line_of(), 2), bytes(50 << 20))
    tracemalloc.start()
    try:
        home.pull()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert home.files() == {"out/a": b"whole"}
    assert "too large" in home.warnings[0]


def test_many_names_of_the_same_bytes_are_not_in_memory_at_once(home: Home) -> None:
    content = b"x" * (12 << 20)
    digest = digest_of(content)
    path = f"{layout.objects_prefix(line_of())}/{digest}"
    home.store.put(path, content)
    home.rank({"out": Dir(), "out/a": new(b"whole")})
    size = len(content)
    rows = [folder_row("out")]
    rows += [file_row(f"out/{n}", size=size, parts=[[0, 0, size, digest]]) for n in range(20)]
    home.store.put(layout.snapshot_path(line_of(), 2), raw_manifest(rows, [[path, 1 << 40]]))
    tracemalloc.start()
    try:
        home.pull()
        assert tracemalloc.get_traced_memory()[1] < 150 << 20  # of 240
    finally:
        tracemalloc.stop()
