from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sojourn.core.errors import QuotaError
from sojourn.core.filters import Filters
from sojourn.storage import manifest
from sojourn.storage.manifest import FILE, FOLDER, LINK
from sojourn.storage.scan import entry_of, scan
from tests.support.snapshots import NO_FILTERS, refuse


class Told:
    def __init__(self) -> None:
        self.paths: dict[str, bool] = {}

    def __call__(self, path: str, reason: str, *, lost: bool = False) -> None:
        assert reason
        self.paths[path] = lost


def test_folders_come_before_what_is_in_them_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b/z", "b/a/q", "a", "c-", "c/x", "b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = list(scan(tmp_path, NO_FILTERS, None, refuse))
    assert set(found) == {"a", "b", "b.txt", "b/a", "b/a/q", "b/z", "c", "c-", "c/x"}
    for path in found:
        parent = os.path.dirname(path)
        assert not parent or found.index(parent) < found.index(path)
    assert found == list(scan(tmp_path, NO_FILTERS, None, refuse))


def test_symlinks_that_name_a_place_inside_by_its_whole_path_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(root)
    (root / "d/last.pt").symlink_to(root / "d/e5.pt")
    (root / "d/up").symlink_to(root)
    (root / "by-alias").symlink_to(tmp_path / "alias/d")
    (root / "neighbour").symlink_to(f"{root}-2/x")
    (root / "sly").symlink_to(f"{root}/d/../../x")
    targets = {"d/last.pt": "e5.pt", "d/up": "..", "by-alias": "d"}
    told = Told()
    found = scan(tmp_path / "alias", NO_FILTERS, None, told)
    links = {path: entry.target for path, entry in found.items() if entry.kind == LINK}
    assert links == targets
    assert set(told.paths) == {"neighbour", "sly"}


def test_kinds_modes_and_times(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    (tmp_path / "f").chmod(0o4750)
    os.utime(tmp_path / "f", ns=(1, 123_456_789))
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "l").symlink_to("f")
    found = scan(tmp_path, NO_FILTERS, None, refuse)
    assert {path: entry.kind for path, entry in found.items()} == {
        "f": FILE,
        "d": FOLDER,
        "l": LINK,
    }
    assert (found["f"].mode, found["f"].mtime, found["f"].size) == (0o750, 123_456_789, 5)
    assert found["f"].inode == os.stat(tmp_path / "f").st_ino
    assert found["d"].mode == 0o700
    assert found["l"].target == "f"


def test_what_snapshots_do_not_hold_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "outside").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("../x")
    told = Told()
    assert scan(tmp_path, NO_FILTERS, None, told) == {}
    assert told.paths == dict.fromkeys(("pipe", "socket", "outside", "up"), False)


def test_excluded_folders_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / "out/deep").mkdir(parents=True)
    os.mkfifo(tmp_path / "out/deep/pipe")  # would be told of
    (tmp_path / "in").write_bytes(b"")
    assert list(scan(tmp_path, Filters(["/out"]), None, refuse)) == ["in"]


def test_ignored_folders_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / "out/deep").mkdir(parents=True)
    (tmp_path / "in").write_bytes(b"")
    seen = []

    def ignore(path: str, *, folder: bool) -> bool:
        seen.append((path, folder))
        return path == "out"

    assert list(scan(tmp_path, NO_FILTERS, ignore, refuse)) == ["in"]
    assert sorted(seen) == [("in", False), ("out", True)]


def test_an_absent_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in ("absent", "file"):
        told = Told()
        assert scan(tmp_path / name, NO_FILTERS, None, told) == {}
        assert told.paths == {".": True}


@pytest.mark.parametrize("instead", ["nothing", "file", "dangling symlink"])
def test_a_folder_that_is_replaced_meanwhile_is_no_error(tmp_path: Path, instead: str) -> None:
    (tmp_path / "d").mkdir()

    def ignore(path: str, *, folder: bool) -> bool:
        if path == "d":
            (tmp_path / "d").rmdir()
            if instead == "file":
                (tmp_path / "d").write_bytes(b"")
            elif instead == "dangling symlink":
                (tmp_path / "d").symlink_to("nowhere")
        return False

    assert list(scan(tmp_path, NO_FILTERS, ignore, refuse)) == ["d"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; run as another user")
def test_a_folder_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0)
    told = Told()
    scan(tmp_path, NO_FILTERS, None, told)
    (tmp_path / "d").chmod(0o700)
    assert told.paths == {"d": True}


def test_devices_are_no_entries() -> None:
    assert entry_of("null", os.stat("/dev/null")) is None


def test_more_than_a_snapshot_can_hold_ends_the_scan_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/f").touch()
    monkeypatch.setattr(manifest, "_MEMORY", 12_000)
    with pytest.raises(QuotaError, match=r"too many files") as caught:
        scan(tmp_path, NO_FILTERS, None, refuse)
    assert "storage.exclude" in str(caught.value.hint)
    assert scan(tmp_path, Filters(["/1*"]), None, refuse)
