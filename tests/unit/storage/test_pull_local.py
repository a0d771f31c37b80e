"""What is at home already, and what the user changes there meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled
from sojourn.storage import layout
from sojourn.storage.pull import pull
from sojourn.storage.restore import Restorer
from tests.support.manifests import file_row, raw_manifest
from tests.support.snapshots import NO_FILTERS, line_of
from tests.support.trees import Dir, File, Link, Node, read_tree
from tests.support.waiting import until
from tests.unit.storage.home import NEW, OLD, Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")


def test_what_is_there_is_not_fetched_again(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a" * 1000), "out/b": new(b"b"), "out/l": Link("a")})
    home.pull()
    home.store.got_paths.clear()
    assert home.pull() == []
    assert not any("/objects/" in path for path in home.store.got_paths)
    home.update(0, {"out": Dir(), "out/a": new(b"a" * 1000), "out/b": File(b"B", mtime=NEW + 1)})
    home.store.got_paths.clear()
    assert home.pull() == ["out/b"]
    assert len([path for path in home.store.got_paths if "/objects/" in path]) == 1


def test_the_same_content_with_another_time_and_mode_is_not_fetched_again(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a" * 1000, 0o600)})
    home.pull()
    os.utime(home.into / "out/a", ns=(NEW + 5, NEW + 5))
    (home.into / "out/a").chmod(0o644)
    assert home.pull() == []
    info = (home.into / "out/a").stat()
    assert (info.st_mtime_ns, info.st_mode & 0o777) == (NEW, 0o600)


@pytest.mark.parametrize("size", [5, 1000], ids=["small", "large"])
def test_another_content_of_the_same_size_and_time_comes_home(home: Home, size: int) -> None:
    """As reproducible archives have it: each version has the same time."""
    home.rank({"out": Dir(), "out/a": new(b"1" * size)})
    home.pull()
    home.update(0, {"out": Dir(), "out/a": new(b"1" * (size - 1) + b"2")})
    assert home.pull() == ["out/a"]
    assert home.files() == {"out/a": b"1" * (size - 1) + b"2"}
    assert home.pull() == []


@pytest.mark.parametrize("at", [0, 1023], ids=["begins", "ends"])
def test_a_hole_is_not_what_a_file_with_something_in_it_holds(home: Home, at: int) -> None:
    home.rank({"out": Dir(), "out/a": new(bytes(1024))})
    home.pull()
    assert home.pull() == []
    with open(home.into / "out/a", "r+b") as file:
        file.seek(at)
        file.write(b"x")
    os.utime(home.into / "out/a", ns=(NEW, NEW))
    mine = (home.into / "out/a").read_bytes()
    assert home.pull() == ["out/a"]
    assert home.files() == {"out/a": bytes(1024), "out/a.local": mine}


def test_a_hole_of_any_size_takes_no_memory_to_compare(home: Home) -> None:
    size = 1 << 40
    home.ranks = 1
    rows = [file_row("a", parts=[[-1, 0, size, ""]], size=size, mtime=NEW)]
    home.store.put(layout.snapshot_path(line_of(), 1), raw_manifest(rows))
    write_tree_at(home.into, {"a": File(b"mine", mtime=OLD)})
    os.truncate(home.into / "a", size)
    os.utime(home.into / "a", ns=(OLD, OLD))
    assert home.pull(".") == ["a"]
    assert (home.into / "a").stat().st_blocks == 0


def test_a_result_that_its_owner_cannot_read_is_replaced(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a", 0o200)})
    home.pull()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("sojourn.storage.localpath.opened", refuse)  # as root can read it
    assert home.pull() == ["out/a"]
    assert home.warnings == []


def test_comparing_can_be_interrupted(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a")})
    home.pull()
    ctx = Context()
    ctx.cancel()
    with pytest.raises(Cancelled):
        pull(ctx, home.store, range(1), "out", home.into, NO_FILTERS)


def test_a_newer_local_file_is_kept_beside(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    for number in range(3):
        write_tree_at(home.into, {"out/a": File(b"mine %d" % number, mtime=NEW + 1 + number)})
        home.pull()
    assert home.files() == {
        "out/a": b"theirs",
        "out/a.local": b"mine 0",
        "out/a.local.2": b"mine 1",
        "out/a.local.3": b"mine 2",
    }
    assert len(home.warnings) == 3


@pytest.mark.parametrize("when", [0, OLD, NEW, NEW + 1])
def test_a_local_file_that_is_as_it_was_pushed_is_replaced_whatever_its_time(
    home: Home, when: int
) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed"), "out/l": Link("a"), "out/b": Link("a")})
    home.rank({"out": Dir(), "out/a": new(b"theirs"), "out/l": Link("b"), "out/b": new(b"file")})
    write_tree_at(
        home.into, {"out/a": File(b"pushed", mtime=when), "out/l": Link("a"), "out/b": Link("a")}
    )
    home.pull()
    assert home.files() == {"out/a": b"theirs", "out/l": "b", "out/b": b"file"}
    assert home.warnings == []


@pytest.mark.parametrize("when", [0, OLD, NEW, NEW + 1])
def test_a_local_file_that_was_edited_since_the_push_is_kept_whatever_its_time(
    home: Home, when: int
) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    write_tree_at(home.into, {"out/a": File(b"edited", mtime=when)})
    home.pull()
    assert home.files() == {"out/a": b"theirs", "out/a.local": b"edited"}
    assert home.warnings == [
        "out/a differs from the version uploaded with this task; kept as a.local"
    ]


@pytest.mark.parametrize("when", [0, OLD, NEW, NEW + 1])
def test_a_local_file_that_the_task_never_had_is_kept_whatever_its_time(
    home: Home, when: int
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    home.rank({"out": Dir(), "out/a": new(b"one")})
    write_tree_at(
        home.into, {"out/a": File(b"mine", mtime=when), "out/a.rank1": File(b"too", mtime=when)}
    )
    home.pull()
    assert home.files() == {
        "out/a": b"theirs",
        "out/a.local": b"mine",
        "out/a.rank1": b"one",
        "out/a.rank1.local": b"too",
    }
    assert home.warnings[1:] == [
        "out/a already exists and did not come from this task; kept as a.local",
        "out/a.rank1 already exists and did not come from this task; kept as a.rank1.local",
    ]


def test_the_copy_of_a_local_file_is_out_of_the_way_of_results(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"theirs"), "out/a.local": new(b"a result")})
    write_tree_at(home.into, {"out/a": File(b"mine")})
    home.pull()
    assert home.files() == {
        "out/a": b"theirs",
        "out/a.local": b"a result",
        "out/a.local.2": b"mine",
    }


def test_many_copies_are_told_of_in_few_lines(home: Home) -> None:
    names = [f"out/{number}" for number in range(30)]
    home.rank({"out": Dir()} | {name: new(b"theirs") for name in names})
    write_tree_at(home.into, {name: File(b"mine") for name in names})
    home.pull()
    assert list(home.files().values()).count(b"mine") == 30
    assert len(home.warnings) == 21
    assert home.warnings[-1] == "10 more local files were kept as NAME.local"


def test_a_symlink_by_its_whole_path_is_the_same(home: Home) -> None:
    """That is how it was uploaded: elsewhere the workdir has another path."""
    home.rank({"out": Dir(), "out/a": new(b"1"), "out/l": Link("a")})
    write_tree_at(home.into, {"out/l": Link(str(home.into / "out/a"))})
    assert home.pull() == ["out/a"]
    assert home.files() == {"out/a": b"1", "out/l": str(home.into / "out/a")}
    assert home.warnings == []


def test_other_local_files_stay(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    write_tree_at(home.into, {"out/mine": File(b"mine"), "else": File(b"else")})
    home.pull()
    assert home.files() == {"out/a": b"theirs", "out/mine": b"mine", "else": b"else"}


Save = Callable[[Path], object]
SAVES: dict[str, tuple[Node | None, Save]] = {
    "appears": (None, lambda path: path.write_bytes(b"mine")),
    "appears as a folder": (None, lambda path: write_tree_at(path, {"f": File(b"mine")})),
    "appears as a symlink": (None, lambda path: path.symlink_to("mine")),
    "is written to": (File(b"1234", mtime=OLD), lambda path: path.write_bytes(b"mine")),
    "is replaced": (File(b"old", mtime=OLD), lambda path: replace_by(path, b"mine")),
    "gets its old time back": (File(b"1234", mtime=OLD), lambda path: disguise(path, b"mine")),
}


def replace_by(path: Path, content: bytes) -> None:
    (path.parent / "new").write_bytes(content)
    (path.parent / "new").rename(path)


def disguise(path: Path, content: bytes) -> None:
    before = path.stat().st_ctime_ns

    def saved() -> bool:
        path.write_bytes(content)
        os.utime(path, ns=(OLD, OLD))
        return path.stat().st_ctime_ns != before  # its clock may not have ticked since it was made

    until(saved)


@pytest.mark.parametrize("remote", ["small", "large", "empty"])
@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
def test_what_is_saved_here_while_the_results_come_is_kept(
    home: Home, save: tuple[Node | None, Save], remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, save_as = save
    content = {"small": b"theirs", "large": b"theirs" * 100, "empty": b""}[remote]
    home.rank({"out": Dir(), "out/a": new(content), "out/l": Link("a")})
    if before:
        home.push({"out": Dir(), "out/a": before})
        write_tree_at(home.into, {"out/a": before})
    while_coming(monkeypatch, lambda: save_as(home.into / "out/a"))
    home.pull()
    assert (home.into / "out/a").read_bytes() == content
    assert {b"mine", "mine"} & set(home.files().values())
    (warning,) = home.warnings
    assert "a.local" in warning
    assert home.pull() == []


def test_what_is_saved_in_the_place_of_a_symlink_that_comes_is_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"a"), "out/l": Link("a")})
    while_coming(monkeypatch, lambda: (home.into / "out/l").write_bytes(b"mine"))
    home.pull()
    assert home.files() == {"out/a": b"a", "out/l": "a", "out/l.local": b"mine"}


def test_what_is_removed_here_while_the_results_come_comes_all_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.push({"out": Dir(), "out/a": File(b"old", mtime=OLD)})
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    write_tree_at(home.into, {"out/a": File(b"old", mtime=OLD)})
    while_coming(monkeypatch, (home.into / "out/a").unlink)
    home.pull()
    assert home.files() == {"out/a": b"theirs"}
    assert home.warnings == []


def while_coming(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something done after room was made, and before the first file is written."""
    real = Restorer._files
    acts = [act]  # the first time only

    def files(self: Restorer, *args: Any) -> None:
        while acts:
            acts.pop()()
        real(self, *args)

    monkeypatch.setattr(Restorer, "_files", files)


@pytest.mark.parametrize("remote", ["file", "folder", "link"])
@pytest.mark.parametrize("local", ["file", "folder", "link"])
def test_whatever_is_in_the_way_is_kept(home: Home, remote: str, local: str) -> None:
    remotes: dict[str, dict[str, Node]] = {
        "file": {"out/a": new(b"theirs")},
        "folder": {"out/a": Dir(), "out/a/f": new(b"theirs")},
        "link": {"out/a": Link("theirs")},
    }
    locals_: dict[str, dict[str, Node]] = {
        "file": {"out/a": File(b"mine", mtime=NEW + 1)},
        "folder": {"out/a": Dir(), "out/a/g": File(b"mine")},
        "link": {"out/a": Link("mine")},
    }
    home.rank({"out": Dir(), **remotes[remote]})
    write_tree_at(home.into, locals_[local])
    home.pull()
    values = set(home.files().values())
    assert values & {b"theirs", "theirs"}
    assert values & {b"mine", "mine"}
    assert home.pull() == []


@pytest.mark.parametrize("at", ["out", "out/d"])
def test_a_local_symlink_to_elsewhere_is_not_written_through(home: Home, at: str) -> None:
    elsewhere = home.into.parent / "elsewhere"
    (elsewhere / "d").mkdir(parents=True)
    (elsewhere / "f").write_bytes(b"mine")
    home.rank({"out": Dir(), "out/d": Dir(), "out/d/f": new(b"theirs"), "out/f": new(b"theirs")})
    (home.into / at).parent.mkdir(parents=True)
    (home.into / at).symlink_to(elsewhere)
    home.pull()
    assert read_tree(elsewhere) == {
        "d": ("dir", 0o755),
        "f": ("file", 0o644, mtime(elsewhere), b"mine"),
    }
    assert (home.into / "out/d/f").read_bytes() == b"theirs"
    assert os.readlink(home.into / f"{at}.local") == str(elsewhere)


def mtime(folder: Path) -> int:
    return (folder / "f").stat().st_mtime_ns
