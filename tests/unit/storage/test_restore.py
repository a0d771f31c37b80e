from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import (
    Cancelled,
    Conflict,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
)
from sojourn.core.events import Event, Progress
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import Manifest, decode
from sojourn.storage.restore import Restorer, temporary_name
from sojourn.storage.store import Store
from tests.support.disks import small_disk
from tests.support.faults import memory_store
from tests.support.manifests import (
    CONTENT,
    DIGEST,
    GOOD_OBJECT,
    file_row,
    folder_row,
    link_row,
    raw_manifest,
)
from tests.support.snapshots import restore
from tests.support.trees import read_tree


@pytest.fixture
def store() -> Store:
    store = memory_store()
    store.put(GOOD_OBJECT, CONTENT)
    return store


@pytest.fixture
def into(tmp_path: Path) -> Iterator[Path]:
    """A folder inside of one that must stay as it is."""
    sentinel = tmp_path / "around"
    (sentinel / "into").mkdir(parents=True)
    (sentinel / "x").write_bytes(b"untouched")
    (sentinel / "d").mkdir()
    yield sentinel / "into"
    assert sorted(path.name for path in sentinel.iterdir()) == ["d", "into", "x"]
    assert (sentinel / "x").read_bytes() == b"untouched"
    assert list((sentinel / "d").iterdir()) == []


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def put_pack(store: Store, *contents: bytes) -> Manifest:
    """A snapshot of small files in one pack, named by their numbers."""
    data = b"".join(contents)
    path = f"workdir/objects/{digest_of(data)}"
    store.put(path, data)
    rows = []
    start = 0
    for number, content in enumerate(contents):
        part = [0, start, len(content), digest_of(content)]
        rows.append(file_row(str(number), size=len(content), parts=[part]))
        start += len(content)
    return decode(raw_manifest(rows, [(path, len(data))]))


def test_an_honest_manifest_is_restored(store: Store, into: Path) -> None:
    rows = [folder_row("a"), file_row("a/f", mode=0o600), link_row("l", "a/f")]
    restored = restore(store, decode(raw_manifest(rows)), into)
    assert read_tree(into) == {
        "a": ("dir", 0o755),
        "a/f": ("file", 0o600, 1, CONTENT),
        "l": ("link", "a/f"),
    }
    for path, entry in restored.entries.items():
        info = os.lstat(into / path)
        assert (entry.inode, entry.ctime) == (info.st_ino, info.st_ctime_ns)


def test_symlinks_in_a_snapshot_cannot_redirect_its_files(store: Store, into: Path) -> None:
    """Even if `decode` let it through, nothing is written through a symlink of the snapshot."""
    rows = [folder_row("a"), link_row("l", "a"), file_row("f")]
    entries = list(decode(raw_manifest(rows)).entries.values())
    entries[1] = entries[1]._replace(target="../d")
    entries.append(entries[2]._replace(path="l/x"))
    with pytest.raises(OSError):  # noqa: PT011
        Restorer(store, into).restore(Context(), entries, {GOOD_OBJECT: len(CONTENT)})


@pytest.mark.parametrize("target", ["../d", "/tmp"])
def test_a_local_symlink_in_the_place_of_a_folder_is_not_followed(
    store: Store, into: Path, target: str
) -> None:
    (into / "a").symlink_to(target)
    manifest = decode(raw_manifest([folder_row("a"), file_row("a/f")]))
    with pytest.raises(Conflict):
        restore(store, manifest, into)
    assert os.readlink(into / "a") == target


def test_a_local_symlink_in_the_place_of_a_file_is_replaced_and_not_followed(
    store: Store, into: Path
) -> None:
    (into / "f").symlink_to("../x")
    restore(store, decode(raw_manifest([file_row("f")])), into)
    assert not (into / "f").is_symlink()
    assert (into / "f").read_bytes() == CONTENT


@pytest.mark.parametrize("size", [len(CONTENT), 20 << 20])
def test_a_planted_temporary_is_not_followed(store: Store, into: Path, size: int) -> None:
    temporary = Path(temporary_name(str(into / "f")))
    temporary.symlink_to("../../x")
    part = [0, 0, len(CONTENT), DIGEST]
    hole = [[-1, 0, size - len(CONTENT), ""]] if size > len(CONTENT) else []
    row = file_row("f", parts=[part, *hole], size=size)
    restore(store, decode(raw_manifest([row])), into)
    assert (into / "f").stat().st_size == size
    assert not (into / "f").is_symlink()


def test_a_leftover_that_cannot_be_written_is_replaced(store: Store, into: Path) -> None:
    temporary = Path(temporary_name(str(into / "f")))
    temporary.write_bytes(b"left by a crash, and longer than the content")
    temporary.chmod(0o444)
    restore(store, decode(raw_manifest([file_row("f")])), into)
    assert (into / "f").read_bytes() == CONTENT
    assert leftovers(into) == []


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o400, 0o600, 0o644, 0o666, 0o755, 0o777])
def test_files_get_their_modes_whatever_the_umask(
    store: Store, into: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        restore(store, decode(raw_manifest([file_row("f", mode=mode)])), into)
    finally:
        os.umask(before)
    assert stat.S_IMODE((into / "f").stat().st_mode) == mode


def test_nobody_else_can_read_a_file_before_it_has_its_mode(
    store: Store, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    real = os.pwrite

    def pwrite(descriptor: int, *args: Any) -> int:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return real(descriptor, *args)

    monkeypatch.setattr(os, "pwrite", pwrite)
    restore(store, decode(raw_manifest([file_row("f", mode=0o600)])), into)
    assert modes == [0o600]


@pytest.mark.parametrize("needed", ["all", "few"])
@pytest.mark.parametrize("damage", ["changed", "shorter", "much shorter", "empty"])
def test_a_damaged_pack_is_an_integrity_error(
    store: Store, into: Path, needed: str, damage: str
) -> None:
    manifest = put_pack(store, *(b"%03d" % number * 100 for number in range(20)))
    (path,) = manifest.objects
    data = bytearray(store.get(path))
    if damage == "changed":
        data[-1] ^= 1
    data = data[: {"shorter": -1, "much shorter": 200, "empty": 0}.get(damage)]
    store.put(path, data)
    entries = list(manifest.entries.values())
    with pytest.raises(IntegrityError):
        Restorer(store, into).restore(
            Context(), entries if needed == "all" else entries[-1:], manifest.objects
        )
    assert leftovers(into) == []
    assert not (into / "19").exists()


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], b"x" * len(CONTENT)])
def test_a_damaged_chunk_is_an_integrity_error(store: Store, into: Path, damage: bytes) -> None:
    parts = [[0, 0, len(CONTENT), DIGEST], [-1, 0, 100, ""], [0, 0, len(CONTENT), DIGEST]]
    manifest = decode(raw_manifest([file_row("f", parts=parts, size=100 + 2 * len(CONTENT))]))
    store.put(GOOD_OBJECT, damage)
    with pytest.raises(IntegrityError):
        restore(store, manifest, into)
    assert list(into.iterdir()) == []


def test_a_missing_object_is_not_found_and_leaves_no_temporaries(store: Store, into: Path) -> None:
    parts = [[0, 0, len(CONTENT), DIGEST], [-1, 0, 100, ""]]
    rows = [file_row("f"), file_row("g", parts=parts, size=100 + len(CONTENT))]
    store.delete([GOOD_OBJECT])
    with pytest.raises(NotFound):
        restore(store, decode(raw_manifest(rows)), into)
    assert list(into.iterdir()) == []


def test_a_hole_that_no_disk_can_hold_is_an_error_of_ours(store: Store, into: Path) -> None:
    size = 1 << 61
    manifest = decode(raw_manifest([file_row("f", parts=[[-1, 0, size, ""]], size=size)]))
    with pytest.raises(SojournError):
        restore(store, manifest, into)
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("size", [4 << 20, 300 << 10], ids=["large", "small"])
def test_a_full_disk_is_told_and_leaves_no_temporaries(tmp_path: Path, size: int) -> None:
    store = memory_store()
    dice = random.Random(1)
    manifest = put_pack(store, *(dice.randbytes(size) for _ in range(8)))
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(QuotaError, match=str(disk)):
            restore(store, manifest, disk)
        assert leftovers(disk) == []


def test_a_cancelled_restore_leaves_no_temporaries(store: Store, into: Path) -> None:
    parts = [[0, 0, len(CONTENT), DIGEST], [-1, 0, 100, ""]]
    rows = [file_row(f"f{n}", parts=parts, size=100 + len(CONTENT)) for n in range(50)]
    ctx = Context()
    ctx.cancel()
    manifest = decode(raw_manifest(rows))
    with pytest.raises(Cancelled):
        Restorer(store, into).restore(ctx, manifest.entries.values(), manifest.objects)
    assert leftovers(into) == []


def test_folders_get_their_modes_and_times_after_what_is_in_them(store: Store, into: Path) -> None:
    rows = [
        folder_row("a", mode=0o500, mtime=5),
        folder_row("a/b", mode=0o555, mtime=6),
        file_row("a/b/f"),
        folder_row("empty", mtime=7),
    ]
    for _ in range(2):  # the second time over what is there
        restore(store, decode(raw_manifest(rows)), into)
        found = read_tree(into, folder_times=True)
        assert found["a"] == ("dir", 0o500, 5)
        assert found["a/b"] == ("dir", 0o555, 6)
        assert found["empty"] == ("dir", 0o755, 7)


def test_few_files_of_a_pack_are_fetched_without_the_rest(store: Store, into: Path) -> None:
    manifest = put_pack(store, *(b"%03d" % number * 1000 for number in range(20)))
    wanted = [manifest.entries["3"], manifest.entries["17"]]
    Restorer(store, into).restore(Context(), wanted, manifest.objects)
    assert (into / "3").read_bytes() == b"003" * 1000
    assert (into / "17").read_bytes() == b"017" * 1000


def test_progress_is_told_up_to_the_total(store: Store, into: Path) -> None:
    manifest = put_pack(store, b"a" * 100, b"b" * 50)
    events: list[Event] = []
    Restorer(store, into).restore(
        Context(events.append), manifest.entries.values(), manifest.objects, step="Down"
    )
    assert [event for event in events if isinstance(event, Progress)][-1] == Progress(
        "Down", 150, 150
    )


def test_each_path_gets_its_name_when_all_of_it_is_written(store: Store, into: Path) -> None:
    parts = [[0, 0, len(CONTENT), DIGEST], [-1, 0, 100, ""]]
    rows = [
        folder_row("d"),
        file_row("d/small"),
        file_row("empty", parts=[], size=0),
        file_row("large", parts=parts, size=100 + len(CONTENT)),
        link_row("link", "large"),
    ]
    told: dict[str, bool] = {}

    def give_name(folder: int, temporary: str, path: str) -> None:
        # All that it takes is written by then, so that the moment in between is a short one.
        whole = Path(temporary_name(str(into / path)))
        told[path] = os.path.lexists(whole) and temporary == whole.name
        assert not os.path.lexists(into / path)
        assert os.path.sameopenfile(folder, os.open(whole.parent, os.O_RDONLY))
        os.replace(whole, into / path)

    manifest = decode(raw_manifest(rows))
    by = Restorer(store, into, give_name=give_name)
    by.restore(Context(), manifest.entries.values(), manifest.objects)
    assert told == dict.fromkeys(("d/small", "empty", "large", "link"), True)
    assert leftovers(into) == []
