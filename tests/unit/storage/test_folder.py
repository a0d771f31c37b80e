"""A store in a folder that others write to as well, on file systems of all kinds."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError, IntegrityError, NotFound, QuotaError
from sojourn.storage.folder import FolderStore
from tests.support.disks import small_disk

BAD = [
    *("", "/", "/etc/passwd", "..", "../outside/secret", "a/../../outside/secret", "a//b", "a/"),
    *(".", "./a", "a/./b", "nul\0", ".sojourn-0123", "a/.sojourn-0123/b", "/".join("a" * 65)),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> FolderStore:
    return FolderStore(folder)


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)


def _tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("path", BAD)
def test_paths_that_are_none_are_refused(store: FolderStore, tmp_path: Path, path: str) -> None:
    store.put("a/b", b"x")
    before = _tree(tmp_path)
    calls: list[Callable[[], Any]] = [
        lambda: store.get(path),
        lambda: list(store.stream(path)),
        lambda: store.get_ranges(path, [(0, 1)]),
        lambda: store.put(path, b"x"),
        lambda: store.put_new(path, b"x"),
        lambda: store.keep([path]),
        lambda: store.copy(path, "c"),
        lambda: store.copy("a/b", path),
        lambda: store.head(path),
        lambda: store.delete(["a/b", path]),
        *([lambda: store.list(path)] if path else []),
    ]
    for call in calls:
        with pytest.raises(IntegrityError, match="invalid path"):
            call()
    assert _tree(tmp_path) == before


@pytest.mark.parametrize("path", ["link/secret", "file"])
def test_symlinks_lead_nowhere(store: FolderStore, folder: Path, path: str) -> None:
    (folder / "link").symlink_to("../outside")
    (folder / "file").symlink_to("../outside/secret")
    for call in (
        lambda: store.get(path),
        lambda: store.get_ranges(path, [(0, 1)]),
        lambda: store.copy(path, "copy"),
    ):
        with pytest.raises(NotFound):
            call()
    assert store.head(path) is None
    assert store.list("") == store.list("link") == []
    store.keep([path])
    store.delete([path])
    assert (folder.parent / "outside" / "secret").read_bytes() == b"secret"


def test_nothing_is_written_through_a_symlink(store: FolderStore, folder: Path) -> None:
    (folder / "link").symlink_to("../outside")
    (folder / "file").symlink_to("../outside/secret")
    for put in (store.put, store.put_new):
        with pytest.raises(NotFound):
            put("link/new", b"x")
    store.put("file", b"replaced")
    assert (folder / "file").read_bytes() == b"replaced"
    assert _tree(folder.parent / "outside") == {"secret"}
    assert (folder.parent / "outside" / "secret").read_bytes() == b"secret"


def test_the_folder_itself_may_be_a_symlink(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    FolderStore(tmp_path / "alias").put("a/b", b"x")
    assert (folder / "a" / "b").read_bytes() == b"x"


@pytest.mark.timeout(30)
def test_a_pipe_makes_nobody_wait(store: FolderStore, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(NotFound):
        store.get("pipe")
    assert store.list("") == []


def test_what_is_being_written_is_not_listed(store: FolderStore, folder: Path) -> None:
    store.put("a/b", b"x")
    (folder / "a" / ".sojourn-00").write_bytes(b"half")
    assert [item.path for item in store.list("")] == ["a/b"]
    assert (folder / "a" / ".sojourn-00").exists()


def test_what_was_abandoned_is_removed_one_day(store: FolderStore, folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / ".sojourn-00").write_bytes(b"half")
    os.utime(folder / "a" / ".sojourn-00", (1, 1))
    assert store.list("") == []
    assert _tree(folder) == {"a"}


def test_names_that_are_no_text_are_not_listed(store: FolderStore, folder: Path) -> None:
    store.put("ü", b"x")
    (folder / os.fsdecode(b"\xff")).write_bytes(b"x")
    assert [item.path for item in store.list("")] == ["ü"]


def test_nothing_is_left_beside_objects(store: FolderStore, folder: Path) -> None:
    store.put("a", b"1")
    store.put("a", b"2")
    assert store.put_new("b", b"1")
    assert not store.put_new("b", b"2")
    store.copy("a", "c")
    store.copy("a", "c")  # another name of the same file: a rename does nothing
    assert _tree(folder) == {"a", "b", "c"}


@pytest.mark.usefixtures("no_links")
def test_without_hard_links_one_creator_wins(store: FolderStore, folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.put_new("a", b"%d" % number), range(8)))
    assert won.count(True) == 1
    assert store.get("a") == b"%d" % won.index(True)
    assert store.put_new("a", b"%d" % won.index(True))
    assert _tree(folder) == {"a"}


@pytest.mark.usefixtures("no_links")
@pytest.mark.parametrize("refused", [None, errno.EXDEV, errno.ENOSYS])
def test_without_hard_links_bytes_are_copied(
    store: FolderStore, folder: Path, monkeypatch: pytest.MonkeyPatch, refused: int | None
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(refused, "refused")

    if refused:
        monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
    content = os.urandom(3 << 20)
    store.put("a", content)
    store.copy("a", "deep/b")
    store.put("a", b"")
    assert store.get("deep/b") == content
    assert _tree(folder) == {"a", "deep", "deep/b"}


def test_a_full_disk_has_room_for_a_lease_but_not_at_the_cost_of_a_copy(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = FolderStore(disk)
        store.put("lease", b"one")
        store.put("copied", b"one")
        store.copy("copied", "copy")
        for size in (64 << 10, 1):
            with pytest.raises(QuotaError):
                _fill(store, size)
        store.put("lease", b"two")
        with pytest.raises(QuotaError):
            store.put("copied", b"two")
        assert bytes(store.get("lease")) == b"two"
        assert bytes(store.get("copied")) == bytes(store.get("copy")) == b"one"


def _fill(store: FolderStore, size: int) -> None:
    for number in range(10_000):
        store.put(f"{size}/{number}", bytes(size))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; run as another user")
def test_what_the_system_denies_is_an_auth_error(store: FolderStore, folder: Path) -> None:
    folder.chmod(0o500)
    try:
        with pytest.raises(AuthError):
            store.put("a", b"x")
    finally:
        folder.chmod(0o700)


def test_a_folder_needs_no_obstore(folder: Path) -> None:
    code = (
        "import sys\n"
        "from sojourn.storage.store import StoreAddress, open_store\n"
        f"open_store(StoreAddress('file://{folder}')).put('a', b'x')\n"
        "print('obstore' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
