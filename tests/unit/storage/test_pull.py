from __future__ import annotations

import errno
import fcntl
import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, IntegrityError, QuotaError, Transient
from sojourn.core.events import Event, Note, Warned
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.pull import newest_of_rank, pull, snapshots_of_rank
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import Store
from tests.support.disks import small_disk
from tests.support.faults import WatchedStore, memory_store
from tests.support.manifests import file_row, folder_row, link_row, raw_manifest
from tests.support.snapshots import NO_FILTERS, line_of, restore, take, writer
from tests.support.trees import Dir, File, Link, Node, read_tree, trees, write_tree
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

OLD = 1_500_000_000_000_000_000
NEW = OLD + 10**12


class Home:
    """A task in a store, and the folder that its results come home to."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self._folder = folder
        self.store = WatchedStore(store or memory_store())
        self.into = folder / "home"
        self.events: list[Event] = []
        self.ranks = 0

    def push(self, tree: Mapping[str, Node]) -> None:
        folder = self._folder / "pushed"
        folder.mkdir()
        write_tree(folder, tree)
        take(SnapshotWriter(self.store, layout.WORKDIR, workers=2), folder)

    def rank(self, tree: Mapping[str, Node]) -> None:
        """The next rank left this."""
        folder = self._folder / f"rank-{self.ranks}"
        folder.mkdir()
        write_tree(folder, tree)
        take(writer(self.store, rank=self.ranks), folder)
        self.ranks += 1

    def update(self, rank: int, tree: Mapping[str, Node]) -> None:
        folder = self._folder / f"rank-{rank}-again"
        folder.mkdir()
        write_tree(folder, tree)
        by = writer(self.store, rank=rank)
        found = newest(self.store, line_of(rank=rank))
        assert found is not None
        by.begin(found[1], found[0])
        take(by, folder)

    def pull(self, output: str = "out", filters: Filters = NO_FILTERS) -> list[str]:
        ctx = Context(self.events.append)
        return pull(ctx, self.store, range(self.ranks), output, self.into, filters)

    def files(self) -> dict[str, bytes | str]:
        """Files and symlinks by what is in them."""
        found = read_tree(self.into)
        return {path: node[-1] for path, node in found.items() if node[0] != "dir"}

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Warned)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def new(content: bytes, mode: int = 0o644) -> File:
    return File(content, mode, NEW)


def test_nothing_there_yet_writes_nothing(home: Home) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed")})
    home.ranks = 2
    assert home.pull() == []
    assert not home.into.exists()


def test_the_output_of_one_rank_comes_home(home: Home) -> None:
    home.rank({"in": File(b"in"), "out": Dir(), "out/a": new(b"a"), "out/l": Link("a")})
    assert sorted(home.pull()) == ["out/a", "out/l"]
    assert home.files() == {"out/a": b"a", "out/l": "a"}


def test_separate_outputs_of_ranks_are_joined(home: Home) -> None:
    for number in range(3):
        home.rank({"out": Dir(), f"out/{number}": new(b"%d" % number), "out/same": new(b"same")})
    home.pull()
    assert home.files() == {"out/0": b"0", "out/1": b"1", "out/2": b"2", "out/same": b"same"}
    assert home.warnings == []


def test_different_contents_are_all_kept_and_told_of(home: Home) -> None:
    for number in range(3):
        home.rank({"out": Dir(), "out/a": new(b"%d" % number)})
    home.pull()
    assert home.files() == {"out/a": b"0", "out/a.rank1": b"1", "out/a.rank2": b"2"}
    assert len(home.warnings) == 2


def test_what_a_rank_left_as_it_was_pushed_gives_way_to_what_another_wrote(home: Home) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed"), "out/b": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": File(b"pushed"), "out/b": new(b"zero")})
    home.rank({"out": Dir(), "out/a": new(b"one"), "out/b": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": File(b"pushed"), "out/b": File(b"pushed")})
    home.pull()
    assert home.files() == {"out/a": b"one", "out/b": b"zero"}
    assert home.warnings == []


def test_changed_by_two_ranks_and_untouched_by_the_first(home: Home) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": File(b"pushed")})
    home.rank({"out": Dir(), "out/a": new(b"one")})
    home.rank({"out": Dir(), "out/a": new(b"two")})
    home.pull()
    assert home.files() == {"out/a": b"one", "out/a.rank2": b"two"}


def test_a_name_that_a_script_uses_itself_is_not_overwritten(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"zero"), "out/a.rank1": new(b"mine")})
    home.rank({"out": Dir(), "out/a": new(b"one")})
    home.pull()
    assert sorted(home.files().values()) == [b"mine", b"one", b"zero"]
    assert home.files()["out/a.rank1"] == b"mine"


def test_what_another_run_left_under_the_name_of_a_rank_is_replaced(home: Home) -> None:
    before: dict[str, Node] = {
        "out": Dir(),
        "out/a": File(b"0", 0o644, OLD),
        "out/a.rank1": File(b"1", 0o644, OLD),
    }
    home.push(before)
    home.into.mkdir(exist_ok=True)
    write_tree(home.into, before)
    home.rank({**before, "out/a": new(b"zero")})
    home.rank({**before, "out/a": new(b"one")})
    home.pull()
    assert home.files() == {"out/a": b"zero", "out/a.rank1": b"one"}


def test_a_folder_has_its_mode_also_if_the_pull_is_broken_off(home: Home) -> None:
    home.rank({"out": Dir(mode=0o755), "out/a": new(b"1"), "out/d": Dir(mode=0o555)})

    def broken(path: str) -> memoryview:
        raise Transient("the store is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home.store, "get", _only_manifests(home.store.get, broken))
        with pytest.raises(Transient):
            home.pull()
    home.pull()
    assert (home.into / "out").stat().st_mode & 0o777 == 0o755


def _only_manifests(
    get: Callable[[str], memoryview], instead: Callable[[str], memoryview]
) -> Callable[[str], memoryview]:
    return lambda path: get(path) if "/snapshots/" in path else instead(path)


def test_names_that_leave_no_room_for_a_suffix_are_shortened(home: Home) -> None:
    name = "out/" + "x" * 255
    home.rank({"out": Dir(), name: new(b"zero")})
    home.rank({"out": Dir(), name: new(b"one")})
    home.rank({"out": Dir(), name: new(b"two"), name[:-6] + ".rank2": new(b"taken")})
    write_tree_at(home.into, {name: File(b"mine", mtime=NEW + 1)})
    home.pull()
    assert home.files()[name] == b"zero"
    assert set(home.files().values()) == {b"zero", b"one", b"two", b"taken", b"mine"}


def test_a_folder_gives_way_to_a_file_of_a_lower_rank(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"file")})
    home.rank({"out": Dir(), "out/a": Dir(), "out/a/b": Dir(), "out/a/b/c": new(b"deep")})
    home.pull()
    assert home.files() == {"out/a": b"file", "out/a.rank1/b/c": b"deep"}


def test_a_file_gives_way_to_a_folder_of_a_lower_rank(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": Dir(), "out/a/b": new(b"inside")})
    home.rank({"out": Dir(), "out/a": new(b"file")})
    home.pull()
    assert home.files() == {"out/a/b": b"inside", "out/a.rank1": b"file"}


@pytest.mark.parametrize("first", [True, False])
def test_a_pushed_folder_that_one_rank_made_a_file(home: Home, first: bool) -> None:
    """A folder that a rank left as it was pushed still holds what is in it."""
    home.push({"out": Dir(), "out/a": Dir(), "out/a/b": File(b"pushed")})
    ranks: list[dict[str, Node]] = [
        {"out": Dir(), "out/a": new(b"file")},
        {"out": Dir(), "out/a": Dir(), "out/a/b": new(b"changed"), "out/a/c": new(b"new")},
    ]
    for tree in ranks if first else reversed(ranks):
        home.rank(tree)
    home.pull()
    assert set(home.files().values()) == {b"changed", b"file", b"new"}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("a/b", {"a/b/f", "a/b/c/f"}),
        ("./a/b/", {"a/b/f", "a/b/c/f"}),
        ("a//b/../b", {"a/b/f", "a/b/c/f"}),
        ("a", {"a/f", "a/b/f", "a/bb/f", "a/b/c/f"}),
        (".", {"f", "a/f", "a/b/f", "a/bb/f", "a/b/c/f"}),
        ("a/b/f", {"a/b/f"}),
        ("absent", set()),
        ("a/b/f/x", set()),
    ],
)
def test_only_the_output_comes_home(home: Home, output: str, expected: set[str]) -> None:
    home.rank(
        {
            "f": new(b"1"),
            "a": Dir(),
            "a/f": new(b"2"),
            "a/b": Dir(),
            "a/bb": Dir(),
            "a/bb/f": new(b"3"),
            "a/b/f": new(b"4"),
            "a/b/c": Dir(),
            "a/b/c/f": new(b"5"),
        }
    )
    assert set(home.pull(output)) == expected
    if expected:
        assert set(home.files()) == expected


def test_what_is_excluded_does_not_come_home(home: Home) -> None:
    tree: dict[str, Node] = {
        "out": Dir(),
        "out/a.log": new(b"1"),
        "out/tmp": Dir(),
        "out/tmp/x": new(b"2"),
    }
    home.rank({**tree, "out/keep": new(b"3")})
    home.pull(filters=Filters(["*.log", "/out/tmp"]))
    assert home.files() == {"out/keep": b"3"}
    assert not (home.into / "out/tmp").exists()


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
    assert home.pull() == ["out/a"]
    assert home.files() == {"out/a": bytes(1024)}


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

    monkeypatch.setattr("sojourn.storage.pull.open", refuse, raising=False)  # as root can read it
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


def test_an_older_local_file_is_replaced(home: Home) -> None:
    home.rank({"out": Dir(), "out/a": new(b"theirs")})
    write_tree_at(home.into, {"out/a": File(b"pushed")})
    home.pull()
    assert home.files() == {"out/a": b"theirs"}


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
    assert "The one before it comes home instead" in warning


def test_nothing_but_damaged_manifests_is_not_nothing(tmp_path: Path) -> None:
    store = memory_store()
    _three_snapshots(store, tmp_path / "root")
    for path in snapshots_of_rank(store, 0):
        store.put(path, b"")
    with pytest.raises(IntegrityError):
        newest_of_rank(store, 0)


def test_the_mode_of_a_local_folder_stays_as_it_is(home: Home) -> None:
    home.rank({"out": Dir(0o755), "out/f": new(b"1"), "out/new": Dir(0o750)})
    (home.into / "out").mkdir(parents=True)
    (home.into / "out").chmod(0o700)
    assert home.pull() == ["out/f"]
    assert (home.into / "out").stat().st_mode & 0o777 == 0o700
    assert (home.into / "out/new").stat().st_mode & 0o777 == 0o750


LINKED: dict[str, tuple[str, dict[str, Node], set[str]]] = {
    "the output itself": (
        "out",
        {"out": Link("runs/7")},
        {"out", "runs/7/f", "runs/7/deep/f"},
    ),
    "a folder above it": (
        "link/7",
        {"link": Link("runs")},
        {"link", "runs/7/f", "runs/7/deep/f"},
    ),
    "nested": (
        "a/b/deep",
        {"a": Dir(), "a/b": Link("../runs/7")},
        {"a/b", "runs/7/deep/f"},
    ),
    "a chain": (
        "out",
        {"out": Link("latest"), "latest": Link("runs/last"), "runs/last": Link("7")},
        {"out", "latest", "runs/last", "runs/7/f", "runs/7/deep/f"},
    ),
    "a chain of folders": (
        "one/deep",
        {"one": Link("two"), "two": Link("runs/7")},
        {"one", "two", "runs/7/deep/f"},
    ),
    "a link to itself": ("out", {"out": Link("out")}, {"out"}),
    "a loop": ("out", {"out": Link("tuo"), "tuo": Link("out")}, {"out", "tuo"}),
    "a loop that grows": ("out", {"out": Link("out/out")}, {"out"}),
    "to nothing": ("out", {"out": Link("absent")}, {"out"}),
    "to a file": ("out", {"out": Link("runs/7/f")}, {"out", "runs/7/f"}),
}


@pytest.mark.parametrize("case", LINKED.values(), ids=LINKED)
def test_an_output_that_is_a_symlink_brings_what_it_leads_to(
    home: Home, case: tuple[str, dict[str, Node], set[str]]
) -> None:
    output, links, expected = case
    runs: dict[str, Node] = {
        "runs": Dir(),
        "runs/7": Dir(),
        "runs/7/f": new(b"precious"),
        "runs/7/deep": Dir(),
        "runs/7/deep/f": new(b"deep"),
        "runs/8": Dir(),
        "runs/8/f": new(b"another"),
        "other": new(b"other"),
    }
    home.rank(runs | links)
    assert set(home.pull(output)) == expected
    assert set(home.files()) == expected
    assert home.pull(output) == []


def test_each_rank_is_asked_where_its_own_output_leads(home: Home) -> None:
    for number in range(2):
        home.rank({"out": Link(f"r{number}"), f"r{number}": Dir(), f"r{number}/f": new(b"1")})
    home.pull()
    assert home.files() == {"out": "r0", "out.rank1": "r1", "r0/f": b"1", "r1/f": b"1"}


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


random_trees = trees(small=64, chunk=256, at_most=6)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(base=random_trees, ranks=st.lists(random_trees, min_size=1, max_size=3))
def test_no_content_of_any_rank_is_ever_lost(
    base: dict[str, Node],
    ranks: list[dict[str, Node]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = Home(tmp_path_factory.mktemp("pull"))
    home.push(base)
    for tree in ranks:
        home.rank(tree)
    home.pull(".")
    found = set(home.files().values()) if home.into.exists() else set()
    pushed = {node.content for node in base.values() if isinstance(node, File)}
    for tree in ranks:
        for node in tree.values():
            if isinstance(node, File):
                assert node.content in found or node.content in pushed
    assert home.pull(".") == []


def write_tree_at(root: Path, tree: Mapping[str, Node]) -> None:
    for path, node in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_tree(root, {path: node})
