"""What comes home of which rank, and under which name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.core.errors import Transient
from sojourn.core.filters import Filters
from tests.support.trees import Dir, File, Link, Node, trees, write_tree
from tests.unit.storage.home import NEW, OLD, Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")


@pytest.mark.parametrize("pushed", [{}, {"out.txt": File(b"pushed"), "d": Dir()}])
def test_nothing_in_the_output_writes_nothing(home: Home, pushed: dict[str, Node]) -> None:
    home.push(pushed)
    home.ranks = 2
    assert home.pull() == []
    assert home.pull("d/out") == []
    assert not home.into.exists()
    assert not home.holds()


def test_a_rank_that_stored_nothing_has_what_was_pushed(home: Home) -> None:
    home.push({"in": File(b"in"), "out": Dir(0o750), "out/a": File(b"pushed"), "out/l": Link("a")})
    home.ranks = 2
    assert home.holds()
    assert sorted(home.pull()) == ["out/a", "out/l"]
    assert home.files() == {"out/a": b"pushed", "out/l": "a"}
    assert (home.into / "out").stat().st_mode & 0o777 == 0o750


def test_a_rank_that_stored_nothing_has_no_say_in_what_another_changed(home: Home) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed"), "out/b": File(b"pushed")})
    home.ranks = 1
    home.rank({"out": Dir(), "out/a": new(b"one")})
    home.pull()
    assert home.files() == {"out/a": b"one", "out/b": b"pushed"}
    assert home.warnings == []


def test_what_was_pushed_and_not_changed_is_left_alone_at_home(home: Home) -> None:
    home.push({"out": Dir(), "out/a": File(b"pushed"), "out/b": File(b"pushed"), "out/d": Dir()})
    home.ranks = 1
    write_tree_at(home.into, {"out/a": File(b"edited", mtime=OLD - 1), "out/d": File(b"file")})
    assert home.pull() == ["out/b"]
    assert home.files() == {"out/a": b"edited", "out/b": b"pushed", "out/d": b"file"}
    assert home.warnings == []


def test_a_task_without_a_workdir_has_nothing_to_begin_with(home: Home) -> None:
    home.ranks = 2
    assert home.pull(".") == []
    assert not home.holds(".")


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

    def broken(path: str, *, most: int = 0) -> memoryview:
        raise Transient("the store is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home.store, "get", _only_manifests(home.store.get, broken))
        with pytest.raises(Transient):
            home.pull()
    home.pull()
    assert (home.into / "out").stat().st_mode & 0o777 == 0o755


def _only_manifests(
    get: Callable[..., memoryview], instead: Callable[..., memoryview]
) -> Callable[..., memoryview]:
    return lambda path, **how: (get if "/snapshots/" in path else instead)(path, **how)


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


def test_the_mode_of_a_local_folder_stays_as_it_is(home: Home) -> None:
    home.rank({"out": Dir(0o755), "out/f": new(b"1"), "out/new": Dir(0o750)})
    (home.into / "out").mkdir(parents=True)
    (home.into / "out").chmod(0o700)
    assert home.pull() == ["out/f"]
    assert (home.into / "out").stat().st_mode & 0o777 == 0o700
    assert (home.into / "out/new").stat().st_mode & 0o777 == 0o750


random_trees = trees(small=64, chunk=256, at_most=6)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
