"""Files that change while they are read are never stored half-written."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.storage import reading, scan
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import Entry
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.scan import entry_of
from sojourn.storage.store import Store
from tests.support.faults import WatchedStore, memory_store
from tests.support.snapshots import NO_FILTERS, missing_objects, restore, take, writer

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

both_sizes = pytest.mark.parametrize("size", [40, 2000], ids=["small", "large"])
Change = Callable[[Path, int], None]


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(memory_store())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def content_of(store: Store, entry: Entry) -> bytes:
    """The bytes of a stored file, put together without the code that restores."""
    content = b""
    for part in entry.parts:
        piece = bytes(part.length)
        if part.object:
            piece = bytes(store.get(part.object))[part.offset : part.offset + part.length]
            assert digest_of(piece) == part.digest
        content += piece
    assert len(content) == entry.size
    return content


def stored(store: Store) -> dict[str, bytes]:
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    assert missing_objects(store, manifest) == set()
    return {path: content_of(store, entry) for path, entry in manifest.entries.items()}


class Interference:
    """Does something to a file at the moment that it is read, the first `times` times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Change, times: int) -> None:
        self.path: Path | None = None
        self.count = 0
        self._change = change
        self._times = times
        self._lock = threading.Lock()
        for name in ("read", "pread"):
            monkeypatch.setattr(os, name, self._hooked(getattr(os, name)))

    def _hooked(self, real: Callable[..., bytes]) -> Callable[..., bytes]:
        def read(descriptor: int, *args: Any) -> bytes:
            data = real(descriptor, *args)
            with self._lock:
                if self.path and os.readlink(f"/proc/self/fd/{descriptor}") == str(self.path):
                    self.count += 1
                    if self.count <= self._times:
                        self._change(self.path, self.count)
            return data

        return read


def _grow(path: Path, count: int) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _truncate(path: Path, count: int) -> None:
    os.truncate(path, 3)


def _rewrite(path: Path, count: int) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(bytes([count % 250 + 1]) * size)


def _rewrite_keeping_the_time(path: Path, count: int) -> None:
    before = path.stat()
    _rewrite(path, count)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _vanish(path: Path, count: int) -> None:
    path.unlink()


def _become_a_symlink(path: Path, count: int) -> None:
    secret = path.parent.parent / "secret"
    secret.write_bytes(b"not to be stored")
    os.utime(secret, ns=(1, 1))
    path.unlink()
    path.symlink_to(secret)


def _become_a_folder(path: Path, count: int) -> None:
    path.unlink()
    path.mkdir()


def _become_another_file(path: Path, count: int) -> None:
    other = path.with_name("other")
    other.write_bytes(b"another")
    other.replace(path)


CHANGES = [_grow, _truncate, _rewrite, _rewrite_keeping_the_time]
REPLACEMENTS = [_vanish, _become_a_symlink, _become_a_folder, _become_another_file]


@both_sizes
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_once_is_taken_as_it_is_then(
    store: WatchedStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    size: int,
) -> None:
    (root / "f").write_bytes(b"a" * size)
    (root / "quiet").write_bytes(b"q" * size)
    interference = Interference(monkeypatch, change, 1)
    interference.path = root / "f"
    take(writer(store), root)
    assert interference.count > 1
    assert stored(store) == {"f": (root / "f").read_bytes(), "quiet": b"q" * size}


@both_sizes
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_keeps_changing_stays_as_it_was_in_the_snapshot_before(
    store: WatchedStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    size: int,
) -> None:
    (root / "f").write_bytes(b"a" * size)
    by = writer(store)
    take(by, root)
    (root / "f").write_bytes(b"b" * size)
    (root / "new").write_bytes(b"n" * size)
    told: dict[str, bool] = {}

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        told[path] = lost

    def kept_changing(path: Path, count: int) -> None:
        if change is _truncate:
            path.write_bytes(b"b" * (size - count % 7))
        change(path, count)

    interference = Interference(monkeypatch, kept_changing, 10**9)
    interference.path = root / "f"
    by.take(Context(), root, NO_FILTERS, skipped=skipped)
    assert told == {"f": True}
    assert stored(store) == {"f": b"a" * size, "new": b"n" * size}
    interference.path = None
    take(by, root)
    assert stored(store)["f"] == (root / "f").read_bytes()


def test_a_new_file_that_keeps_changing_is_left_out_and_told_of(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_bytes(b"a" * 2000)
    told = []
    interference = Interference(monkeypatch, _rewrite, 10**9)
    interference.path = root / "f"
    writer(store).take(
        Context(), root, NO_FILTERS, skipped=lambda path, reason, lost=False: told.append(path)
    )
    assert told == ["f"]
    assert stored(store) == {}


@both_sizes
@pytest.mark.parametrize("change", REPLACEMENTS)
def test_a_file_that_is_replaced_while_it_is_read_is_whole_or_absent(
    store: WatchedStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    size: int,
) -> None:
    (root / "f").write_bytes(b"a" * size)
    interference = Interference(monkeypatch, change, 1)
    interference.path = root / "f"
    take(writer(store), root)
    assert stored(store).get("f", b"absent") in (b"a" * size, b"another", b"absent")


@pytest.mark.parametrize("change", REPLACEMENTS)
def test_a_file_that_is_replaced_between_the_scan_and_the_read_is_whole_or_absent(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    (root / "f").write_bytes(b"a" * 300)
    (root / "g").write_bytes(b"g" * 300)
    real = reading.Reader.read

    def late(self: reading.Reader, *args: Any) -> reading.Readings:
        change(root / "f", 1)
        return real(self, *args)

    monkeypatch.setattr(reading.Reader, "read", late)
    by = writer(store)
    take(by, root)
    assert stored(store)["g"] == b"g" * 300
    assert stored(store).get("f", b"absent") in (b"another", b"absent")
    monkeypatch.setattr(reading.Reader, "read", real)
    by.take(Context(), root, NO_FILTERS, skipped=lambda path, reason, lost=False: None)
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    holds = os.path.lexists(root / "f") and not (root / "f").is_symlink()  # it leads outside
    assert ("f" in manifest.entries) == holds


def test_a_folder_that_becomes_a_file_between_the_scan_and_the_read(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_bytes(b"a" * 300)
    real = reading.Reader.read

    def late(self: reading.Reader, *args: Any) -> reading.Readings:
        (root / "d").rename(tmp_path / "away")
        (root / "d").write_bytes(b"")
        return real(self, *args)

    monkeypatch.setattr(reading.Reader, "read", late)
    take(writer(store), root)
    assert "d/f" not in stored(store)


def test_records_of_a_busy_writer_are_never_torn(store: WatchedStore, root: Path) -> None:
    """Each write makes all bytes of a file the same, so that a mixture would be seen."""
    sizes = {"small": 50, "large": 20_000}
    for name, size in sizes.items():
        (root / name).write_bytes(b"\1" * size)
    stop = threading.Event()
    dice = random.Random(5)

    def scribble() -> None:
        files = {name: os.open(root / name, os.O_WRONLY) for name in sizes}
        count = 0
        while not stop.wait(dice.random() * 0.04):
            count += 1
            for name, size in sizes.items():
                os.pwrite(files[name], bytes([count % 250 + 1]) * size, 0)
        for descriptor in files.values():
            os.close(descriptor)

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        by = writer(store)
        seen: set[tuple[str, int]] = set()
        give_up = time.monotonic() + 10
        while len(seen) < 6 and time.monotonic() < give_up:
            by.take(Context(), root, NO_FILTERS, skipped=lambda path, reason, lost=False: None)
            for name, content in stored(store).items():
                assert content == content[:1] * sizes[name]
                seen.add((name, content[0]))
            by.sweep()
    finally:
        stop.set()
        thread.join()
    assert len(seen) >= 6


def test_a_change_within_the_same_tick_of_the_clock_is_seen_at_the_next_scan(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, same inode, and maybe the same time: only cooling makes the time trustworthy."""
    tick = 100_000_000

    def slow_clock(path: str, info: os.stat_result, target: str = "") -> Entry | None:
        entry = entry_of(path, info, target)
        return entry and entry._replace(
            mtime=entry.mtime // tick * tick, ctime=entry.ctime // tick * tick + 1
        )

    def changed(entry: Entry, descriptor: int) -> bool:
        return slow_clock(entry.path, os.fstat(descriptor)) != entry

    monkeypatch.setattr(reading, "entry_of", slow_clock)
    monkeypatch.setattr(scan, "entry_of", slow_clock)
    monkeypatch.setattr(reading, "_changed", changed)
    monkeypatch.setattr(reading, "_COOL", tick + 10_000_000)
    by = writer(store)
    for number in range(6):
        (root / "f").write_bytes(b"%03d" % number)
        take(by, root)
        by.sweep()
        assert stored(store)["f"] == b"%03d" % number


def test_a_file_system_that_counts_whole_seconds_is_waited_for(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_bytes(b"x")

    def coarse(path: str, info: os.stat_result, target: str = "") -> Entry | None:
        entry = entry_of(path, info, target)
        return entry and entry._replace(ctime=entry.ctime // 10**9 * 10**9)

    monkeypatch.setattr(reading, "entry_of", coarse)
    monkeypatch.setattr(reading, "_changed", lambda entry, descriptor: False)
    take(writer(store), root)
    assert stored(store) == {"f": b"x"}


def test_no_file_stays_open(store: WatchedStore, root: Path) -> None:
    for number in range(30):
        (root / str(number)).write_bytes(b"x" * (number * 40))
    before = len(os.listdir("/proc/self/fd"))
    take(writer(store), root)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; run as another user")
def test_a_file_that_cannot_be_read_is_told_of(store: WatchedStore, root: Path) -> None:
    (root / "f").write_bytes(b"x")
    (root / "f").chmod(0)
    told = []
    writer(store).take(
        Context(), root, NO_FILTERS, skipped=lambda path, reason, lost=False: told.append(path)
    )
    assert told == ["f"]


@both_sizes
def test_a_bad_sector_costs_its_own_file_and_no_other(
    store: WatchedStore, root: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    for name in ("bad", "before", "good"):
        (root / name).write_bytes(name.encode().ljust(size))
    by = writer(store)
    (root / "bad").rename(root.parent / "bad")
    take(by, root)
    (root.parent / "bad").rename(root / "bad")
    (root / "before").write_bytes(b"unreadable".ljust(size))
    (root / "good").write_bytes(b"changed".ljust(size))
    told: dict[str, bool] = {}

    def skipped(path: str, reason: str, *, lost: bool = False) -> None:
        told[path] = lost

    def failing(real: Callable[..., bytes]) -> Callable[..., bytes]:
        def read(descriptor: int, *args: Any) -> bytes:
            if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name in ("bad", "before"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(descriptor, *args)

        return read

    with monkeypatch.context() as patch:
        for name in ("read", "pread"):
            patch.setattr(os, name, failing(getattr(os, name)))
        assert by.take(Context(), root, NO_FILTERS, skipped=skipped)
    assert told == {"bad": True, "before": True}
    assert stored(store) == {"before": b"before".ljust(size), "good": b"changed".ljust(size)}
    take(by, root)
    assert stored(store)["bad"] == b"bad".ljust(size)


def test_a_sparse_file_of_5_gib_is_quick_and_stays_sparse(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # real limits
    store = WatchedStore(memory_store())
    size = 5 << 30
    marks = {0: b"begin", (3 << 30) + 12345: b"middle", size - 3: b"end"}
    with (root / "sparse").open("wb") as file:
        file.truncate(size)
        for position, text in marks.items():
            file.seek(position)
            file.write(text)
    start = time.monotonic()
    take(writer(store), root)
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    into = tmp_path / "restored"
    into.mkdir()
    restore(store, manifest, into)
    assert time.monotonic() - start < 30
    info = (into / "sparse").stat()
    assert info.st_size == size
    assert info.st_blocks * 512 < 64 << 20
    with (into / "sparse").open("rb") as file:
        for position, text in marks.items():
            file.seek(position)
            assert file.read(len(text)) == text
        for position in range(1 << 20, size, 777 << 20):
            file.seek(position)
            assert not any(file.read(4096))
