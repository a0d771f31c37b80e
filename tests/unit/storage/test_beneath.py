"""What a hostile script can do to the folder that is walked: nothing from elsewhere is touched."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import SojournError
from sojourn.core.filters import Filters
from sojourn.engine.gitignore import IgnoreRules
from sojourn.storage import layout
from sojourn.storage.beneath import Beneath, let_in
from sojourn.storage.manifest import Entry, Manifest
from sojourn.storage.pull import pull
from sojourn.storage.restore import Restorer
from sojourn.storage.scan import scan
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import Store
from tests.support.deep import depth_of, exchange, make_deep, removed
from tests.support.faults import memory_store
from tests.support.privileges import stopped_by_modes
from tests.support.snapshots import NO_FILTERS, refuse, take, writer

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

SECRET = b"what nobody may have"
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a secret at each name that tests use."""
    for name in ("f", "large"):
        file = tmp_path / "outside" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(SECRET)
        os.utime(file, ns=(1, 1))
    (tmp_path / "outside").chmod(0o755)
    os.utime(tmp_path / "outside", ns=(1, 1))
    return tmp_path / "outside"


def told(path: str, reason: str, *, lost: bool = False) -> None:
    """Whatever is left out."""


def contents(store: Store) -> bytes:
    """All that a store has, without its manifests."""
    return b"".join(bytes(store.get(o.path)) for o in store.list("") if "/objects/" in o.path)


def as_before(outside: Path) -> bool:
    """Whether nothing was done to what is not ours."""
    files = {path.name: path.read_bytes() for path in outside.iterdir()}
    info = outside.stat()
    whole = files == {"f": SECRET, "large": SECRET}
    return whole and (info.st_mode & 0o777, info.st_mtime_ns) == (0o755, 1)


# What is walked.


def test_a_folder_that_becomes_a_symlink_while_its_parent_is_looked_at_is_not_entered(
    root: Path, outside: Path
) -> None:
    (root / "d").mkdir()

    def ignore(path: str, *, folder: bool) -> bool:
        if path == "d":
            exchange(root / "d", outside)
        return False

    assert list(scan(root, NO_FILTERS, ignore, refuse)) == ["d"]


@pytest.mark.parametrize("depth", [1, 2, 40])
def test_a_folder_above_that_becomes_a_symlink_between_the_scan_and_the_read_is_not_read_through(
    root: Path, tmp_path: Path, depth: int
) -> None:
    (inner := root.joinpath(*["d"] * depth)).mkdir(parents=True)
    (inner / "f").write_bytes(b"a" * 300)
    alike = tmp_path.joinpath("alike", *["d"] * (depth - 1))
    alike.mkdir(parents=True)
    (alike / "f").write_bytes(SECRET)
    store = memory_store()

    def found(files: object) -> None:
        exchange(root / "d", tmp_path / "alike")

    writer(store).take(Context(), root, NO_FILTERS, skipped=told, found=found)
    assert SECRET not in contents(store)


def test_the_folder_itself_is_no_symlink_where_others_write_beside_it(
    root: Path, outside: Path
) -> None:
    link = root / "link"
    link.symlink_to(outside)
    assert set(scan(link, NO_FILTERS, None, refuse)) == {"f", "large"}
    lost: list[str] = []
    found = scan(link, NO_FILTERS, None, lambda path, *_, **__: lost.append(path), strict=True)
    assert (found, lost) == ({}, ["."])
    store = memory_store()
    by = SnapshotWriter(store, layout.data_prefix(0, 1), base=layout.WORKDIR, strict=True)
    by.take(Context(), link, NO_FILTERS, skipped=told)
    assert SECRET not in contents(store)
    with pytest.raises(OSError):  # noqa: PT011
        Restorer(store, link, strict=True).restore(Context(), [Entry("new", "f", 0o644, 1)], {})
    assert as_before(outside)


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges by a call of Linux")
def test_no_snapshot_ever_has_what_a_racing_script_links_to(root: Path, outside: Path) -> None:
    """For many rounds; every few of them found it, when only the last part was protected."""
    for name in "abcd":
        (root / name / "e").mkdir(parents=True)
        for number in range(20):
            (root / name / "e" / f"n{number}").write_bytes(b"%d" % number)
    for name in "abcd":
        (root / f"link-{name}").symlink_to(outside)
    for number in range(20):
        (outside / "e").mkdir(exist_ok=True)
        (outside / "e" / f"n{number}").write_bytes(SECRET)
    store = memory_store()
    stop = threading.Event()
    racing = threading.Thread(target=_exchange_until, args=(root, stop))
    racing.start()
    try:
        by = writer(store)
        for _ in range(60):
            by.take(Context(), root, NO_FILTERS, skipped=told)
            assert SECRET not in contents(store)
    finally:
        stop.set()
        racing.join()


def _exchange_until(root: Path, stop: threading.Event) -> None:
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    while not stop.wait(0.0002):
        for name in "abcd":
            old, new = os.fsencode(root / name), os.fsencode(root / f"link-{name}")
            rename(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_EXCHANGE)


# What is written.


class Trap:
    """A store that has a folder exchanged with a symlink when the first object is fetched."""

    def __init__(self, store: Store, folder: Path, outside: Path) -> None:
        self._store = store
        self._folder = folder
        self._outside = outside
        self._turn = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        with self._turn:
            fetches = name in ("get", "get_ranges", "stream")
            if fetches and self._folder.is_dir() and not self._folder.is_symlink():
                exchange(self._folder, self._outside)
        return getattr(self._store, name)


def stored(tmp_path: Path) -> tuple[Store, Manifest]:
    """A snapshot of a folder with a small file and a large one."""
    made = tmp_path / "made"
    (made / "d").mkdir(parents=True)
    (made / "d" / "f").write_bytes(b"small")
    (made / "d" / "large").write_bytes(os.urandom(3000))
    store = memory_store()
    take(SnapshotWriter(store, layout.WORKDIR), made)
    found = newest(store, layout.WORKDIR)
    assert found
    return store, found[1]


@pytest.mark.parametrize("path", ["f", "large"])
def test_nothing_is_written_through_a_folder_that_becomes_a_symlink(
    root: Path, outside: Path, tmp_path: Path, path: str
) -> None:
    store, manifest = stored(tmp_path)
    entries = [manifest.entries["d"], manifest.entries[f"d/{path}"]]
    with suppress(OSError):
        Restorer(Trap(store, root / "d", outside), root).restore(
            Context(), entries, manifest.objects
        )
    assert (root / "d").is_symlink()
    assert as_before(outside)


def test_no_folder_elsewhere_gets_the_mode_and_time_of_a_restored_one(
    root: Path, outside: Path
) -> None:
    """It was whole by then, and only its attributes were left to be set."""
    store = memory_store()
    store.put(f"workdir/objects/{'0' * 64}", b"")
    entries = [Entry("d", "d", 0o700, 5), Entry("f", "f", 0o600, 5)]

    def give_name(folder: int, temporary: str, path: str) -> None:
        exchange(root / "d", outside)
        os.rename(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)

    with suppress(OSError):
        Restorer(store, root, give_name=give_name).restore(Context(), entries, {})
    assert (root / "d").is_symlink()
    assert as_before(outside)


def test_results_do_not_follow_a_symlink_that_appears_while_they_come_home(
    root: Path, outside: Path, tmp_path: Path
) -> None:
    store, _ = stored(tmp_path)
    with suppress(OSError, SojournError):
        pull(Context(), Trap(store, root / "d", outside), range(1), "d", root, NO_FILTERS)
    assert (root / "d").is_symlink()
    assert as_before(outside)


def test_a_folder_that_lets_nobody_in_is_opened_and_a_symlink_to_one_is_not(
    root: Path, outside: Path
) -> None:
    (root / "shut").mkdir()
    (root / "shut").chmod(0o070)
    (root / "link").symlink_to(outside)
    with opened(root) as here:
        let_in(here, "shut")
        with pytest.raises(OSError):  # noqa: PT011
            let_in(here, "link")
    assert (root / "shut").stat().st_mode & 0o777 == 0o770
    assert as_before(outside)


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# How deep it may be.


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(map(int, os.listdir("/dev/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 250, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("depth", [500, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("few_descriptors")
def test_a_tree_deeper_than_paths_are_long_goes_up_and_comes_home(
    root: Path, tmp_path: Path, request: pytest.FixtureRequest, depth: int
) -> None:
    request.addfinalizer(removed(tmp_path))
    into = tmp_path / "into"
    into.mkdir()
    make_deep(root, depth)
    store = memory_store()
    rules = IgnoreRules(root, git=True, default=True)
    by = SnapshotWriter(store, layout.WORKDIR)
    by.take(Context(), root, Filters(["*.tmp", "/x/**"]), ignore=rules, skipped=refuse)
    for output in ("d", "."):
        filters = Filters(["*.log", "/d/y/**"])
        pull(Context(), store, range(1), output, into, filters)
        assert depth_of(into) == depth
        # And once more: all of it is compared with what is there.
        assert pull(Context(), store, range(1), output, into, filters) == []


def test_many_folders_of_all_depths_are_reached_in_any_order(root: Path) -> None:
    make_deep(root, 100)
    for number in range(50):
        (root / "d/d" / f"side{number}").mkdir()
    paths = ["/".join(["d"] * depth) for depth in (100, 1, 99, 60, 61, 2, 100, 3, 33, 34, 35)]
    paths += [f"d/d/side{number}" for number in range(50)] + ["", "d"]
    with Beneath(root) as there:
        for path in paths:
            assert os.path.samestat(os.fstat(there.folder(path)), os.stat(root / path))
        for path in ("d/absent", "d/f", "d/d/d/absent/x"):
            with pytest.raises(OSError):  # noqa: PT011
                there.folder(path)
            assert os.path.samestat(os.fstat(there.folder("d/d")), os.stat(root / "d/d"))


def test_nothing_stays_open(root: Path) -> None:
    make_deep(root, 50)
    before = len(os.listdir("/dev/fd"))
    with Beneath(root) as there:
        there.folder("/".join(["d"] * 50))
        elsewhere = threading.Thread(target=there.folder, args=("/".join(["d"] * 40),))
        elsewhere.start()
        elsewhere.join()
        assert len(os.listdir("/dev/fd")) > before
    assert len(os.listdir("/dev/fd")) <= before


def test_a_way_through_a_folder_that_may_not_be_read_is_an_error(root: Path) -> None:
    stopped = stopped_by_modes()
    (root / "d/e").mkdir(parents=True)
    (root / "d").chmod(0)
    program = f"from sojourn.storage.beneath import Beneath\nBeneath({str(root)!r}).folder('d/e')\n"
    ended = _run([*stopped, sys.executable, "-c", program])
    (root / "d").chmod(0o700)
    assert "PermissionError" in ended


def _run(command: list[str]) -> str:
    import subprocess

    return subprocess.run(command, capture_output=True, text=True, check=False).stderr
