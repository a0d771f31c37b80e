"""Pulling again and again, and tasks that share a folder: what an earlier pull wrote is known."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.core.errors import Transient
from sojourn.storage import layout, pulled
from sojourn.storage.pulled import Pulled
from tests.support.trees import Dir, File, Link, Node
from tests.support.waiting import until
from tests.unit.storage.home import NEW, OLD, Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")


@pytest.fixture
def other(tmp_path: Path, home: Home) -> Home:
    """Another task whose results come home to the same folder."""
    (tmp_path / "other").mkdir()
    another = Home(tmp_path / "other")
    another.into = home.into
    return another


def test_a_task_that_is_pulled_while_it_runs_leaves_no_copies(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"0"), "out/l": Link("a"), "out/x": new(b"file")})
    home.rank({"out": Dir(), "out/a": new(b"one 0")})
    home.pull()
    for number, kind in ((1, Link("a")), (2, new(b"a file again")), (3, Link("b"))):
        content = b"%d" % number * 100 * (number - 1)
        home.update(
            0,
            {
                "out": Dir(),
                "out/a": File(content, mtime=OLD - number),
                "out/l": Link(f"to-{number}"),
                "out/x": kind,
            },
        )
        home.update(1, {"out": Dir(), "out/a": File(b"one %d" % number, mtime=OLD)})
        home.pull()
        files = home.files()
        assert sorted(files) == ["out/a", "out/a.rank1", "out/l", "out/x"]
        assert (files["out/a"], files["out/a.rank1"]) == (content, b"one %d" % number)
    assert all("Ranks wrote" in warning for warning in home.warnings)


def write(path: Path, content: bytes = b"old.") -> None:
    """As nobody would notice it by the time of the file."""
    before = path.stat().st_ctime_ns

    def written() -> bool:
        path.write_bytes(content)
        os.utime(path, ns=(NEW, NEW))
        return path.stat().st_ctime_ns != before  # its clock may not have ticked since

    until(written)


CHANGES: dict[str, Callable[[Path], object]] = {
    "in place": lambda path: path.write_bytes(b"mine"),
    "with the old time": lambda path: write(path, b"old!"),
    "with the same bytes": write,
    "by a copy": lambda path: (
        (path.parent / "copy").write_bytes(b"mine"),
        (path.parent / "copy").rename(path),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_since_it_came_home_is_kept(
    home: Home, change: Callable[[Path], object]
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"old.")})
    home.pull()
    change(home.into / "out/a")
    mine = (home.into / "out/a").read_bytes()
    home.update(0, {"out": Dir(), "out/a": File(b"new", mtime=NEW + 1)})
    home.pull()
    assert home.files() == {"out/a": b"new", "out/a.local": mine}
    assert home.warnings == ["out/a changed since it was downloaded; kept as a.local"]


def test_what_is_changed_as_soon_as_it_comes_home_is_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rank({"out": Dir(), "out/a": new(b"old")})
    real = os.replace

    def replace_and_edit(source: str, target: str, **folders: int) -> None:
        real(source, target, **folders)
        if target == "a":
            (home.into / "out/a").write_bytes(b"mine")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_and_edit)
        home.pull()
    home.update(0, {"out": Dir(), "out/a": new(b"new")})
    home.pull()
    assert home.files() == {"out/a": b"new", "out/a.local": b"mine"}


def test_a_result_that_only_gets_another_time_and_mode_is_still_known(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    home.update(0, {"out": Dir(), "out/a": File(b"1", 0o600, NEW + 1)})
    assert home.pull() == []
    home.update(0, {"out": Dir(), "out/a": File(b"2", 0o600, NEW + 1)})
    home.pull()
    assert home.files() == {"out/a": b"2"}
    assert home.warnings == []


def test_the_results_of_two_tasks_are_both_kept(home: Home, other: Home) -> None:
    pushed: dict[str, Node] = {"out": Dir(), "out/a": File(b"pushed")}
    write_tree_at(home.into, pushed)
    for task, when in ((home, NEW), (other, NEW + 1)):
        task.push(pushed)
        task.rank({"out": Dir(), "out/a": File(b"of %d" % when, mtime=when)})
    home.pull()
    assert home.warnings == []
    other.pull()
    assert home.files() == {"out/a": b"of %d" % (NEW + 1), "out/a.local": b"of %d" % NEW}
    assert other.warnings == [
        "out/a differs from the version uploaded with this task; kept as a.local"
    ]


def test_equal_results_of_two_tasks_stay_where_they_are(home: Home, other: Home) -> None:
    for task in (home, other):
        task.rank({"out": Dir(), "out/a": new(b"same"), "out/l": Link("a")})
    home.pull()
    assert other.pull() == []
    assert home.files() == {"out/a": b"same", "out/l": "a"}
    assert other.warnings == []


def test_what_two_tasks_brought_home_is_not_replaced_by_one_of_them(
    home: Home, other: Home
) -> None:
    for task in (home, other):
        task.rank({"out": Dir(), "out/a": new(b"same"), "out/l": Link("a")})
    home.pull()
    before = (home.into / "out/a").stat().st_ctime_ns

    def pulled_by_other() -> bool:
        other.pull()  # its clock may not have ticked since
        return (home.into / "out/a").stat().st_ctime_ns != before

    until(pulled_by_other)
    home.update(0, {"out": Dir(), "out/a": File(b"newer", mtime=NEW + 1), "out/l": Link("b")})
    home.pull()
    assert home.files() == {
        "out/a": b"newer",
        "out/a.local": b"same",
        "out/l": "b",
        "out/l.local": "a",
    }


def test_a_task_that_was_created_anew_does_not_replace_what_the_former_one_left(
    home: Home,
) -> None:
    home.store.put(f"{layout.CREATORS}/one", b"")
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    home.store.put(f"{layout.CREATORS}/two", b"")  # created again while it is there
    home.update(0, {"out": Dir(), "out/a": new(b"2")})
    home.pull()
    assert home.files() == {"out/a": b"2"}
    home.store.delete([f"{layout.CREATORS}/{name}" for name in ("one", "two")])
    home.store.put(f"{layout.CREATORS}/three", b"")
    home.update(0, {"out": Dir(), "out/a": new(b"3")})
    home.pull()
    assert home.files() == {"out/a": b"3", "out/a.local": b"2"}


def test_each_folder_has_its_own_memory(home: Home, tmp_path: Path) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    home.into = tmp_path / "elsewhere"
    write_tree_at(home.into, {"out/a": File(b"mine")})
    home.pull()
    assert home.files() == {"out/a": b"1", "out/a.local": b"mine"}
    home.update(0, {"out": Dir(), "out/a": new(b"2")})
    for folder in ("elsewhere", "home"):
        home.into = tmp_path / folder
        home.pull()
        assert home.files()["out/a"] == b"2"
    assert len(home.warnings) == 1


def test_a_folder_is_the_same_by_another_name(home: Home, tmp_path: Path) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    (tmp_path / "link").symlink_to("home")
    home.into = tmp_path / "link"
    home.update(0, {"out": Dir(), "out/a": new(b"2")})
    home.pull()
    assert home.files() == {"out/a": b"2"}


def test_a_pull_that_broke_off_knows_what_it_wrote(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rank({"out": Dir(), "out/a": new(b""), "out/b": new(b"large" * 100)})

    def broken(_: str) -> None:
        raise Transient("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(home.store, "stream", broken)
        with pytest.raises(Transient):
            home.pull()
    assert home.files() == {"out/a": b""}
    home.update(0, {"out": Dir(), "out/a": new(b"new"), "out/b": new(b"large" * 100)})
    home.pull()
    assert home.files() == {"out/a": b"new", "out/b": b"large" * 100}
    assert home.warnings == []


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"\xff",
        b'{"format": 1}',
        b'{"format": 1, "creators": [], "folders": []}',
        b'{"format": 1, "creators": [], "folders": {"HOME": []}}',
        b'{"format": 1, "creators": [], "folders": {"HOME": {"out/a": 7}}}',
        b'{"format": 2, "creators": [], "folders": {"HOME": {}}}',
        b'{"format": 1, "creators": 7, "folders": {"HOME": {}}}',
        b"[" * 100_000,
    ],
    ids=lambda damage: repr(damage[:50]),
)
def test_without_a_memory_that_can_be_read_copies_are_kept(home: Home, damage: bytes) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    assert home.memory
    home.memory.write_bytes(damage.replace(b"HOME", os.fsencode(home.into)))
    home.update(0, {"out": Dir(), "out/a": new(b"2")})
    home.pull()
    assert home.files() == {"out/a": b"2", "out/a.local": b"1"}
    home.update(0, {"out": Dir(), "out/a": new(b"3")})
    home.pull()
    assert home.files() == {"out/a": b"3", "out/a.local": b"1"}


@pytest.mark.parametrize("state", ["absent", "a file", "a folder in its place"])
def test_without_a_memory_that_can_be_written_copies_are_kept(home: Home, state: str) -> None:
    assert home.memory
    if state == "absent":
        home.memory = None
    elif state == "a file":
        home.memory.parent.write_bytes(b"")
    else:
        home.memory.mkdir(parents=True)
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    home.update(0, {"out": Dir(), "out/a": new(b"2")})
    home.pull()
    assert home.files() == {"out/a": b"2", "out/a.local": b"1"}
    if state == "a folder in its place":
        assert home.memory
        assert os.listdir(home.memory.parent) == ["pulled.json"]


def test_only_its_owner_can_look_into_the_memory(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    assert home.memory
    assert stat.S_IMODE(home.memory.parent.stat().st_mode) == 0o700
    assert os.listdir(home.memory.parent) == ["pulled.json"]


def test_the_memory_is_not_written_if_there_is_nothing_new(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"1")})
    home.pull()
    assert home.memory
    before = home.memory.stat().st_ino
    home.pull()
    assert home.memory.stat().st_ino == before


def test_odd_names_are_remembered(home: Home) -> None:
    names = ["out/\n\x1b[31m", "out/\udcff", 'out/"\\', "out/é"]
    home.rank({"out": Dir()} | {name: new(b"1") for name in names})
    home.pull()
    home.update(0, {"out": Dir()} | {name: new(b"2") for name in names})
    home.pull()
    assert home.files() == dict.fromkeys(names, b"2")
    assert home.warnings == []


def test_the_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulled, "_FOLDERS_AT_MOST", 2)
    monkeypatch.setattr(pulled, "_PATHS_AT_MOST", 3)
    info = tmp_path.stat()
    for folder in ("a", "b", "c"):
        for name in ("1", "2", "3", "1", "4"):
            memory = Pulled(tmp_path / "pulled.json", tmp_path / folder)
            memory.add(name, info)
            memory.save()
    folders = json.loads((tmp_path / "pulled.json").read_text())["folders"]
    assert [os.path.basename(folder) for folder in folders] == ["b", "c"]
    assert [list(paths) for paths in folders.values()] == [["3", "1", "4"]] * 2
