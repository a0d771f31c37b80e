"""What is told of results is what a pull does with them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.above import with_folders
from sojourn.core.interfaces import Place
from sojourn.storage.changes import changed_files
from sojourn.storage.results import Wanted
from tests.support.snapshots import NO_FILTERS
from tests.support.trees import Dir, File, Link, Node
from tests.unit.storage.home import Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

_HALF: dict[str, Node] = {"out": Dir(), "out/r": Dir(), "out/r/HEAD": new(b"ref: x")}
_REST: dict[str, Node] = {
    "out": Dir(),
    "out/r": Dir(),
    "out/r/objects": Dir(),
    "out/r/objects/o": new(b"o"),
    "out/r/refs": Dir(),
    "out/r/config": new(b"[core]"),
}


def _places(home: Home, output: str) -> dict[str, Place]:
    wanted = Wanted(output, home.into, NO_FILTERS, home.memory, {})
    return {file.path: file.place for file in changed_files(home.store, range(home.ranks), wanted)}


def _agree(home: Home, output: str) -> dict[str, Place]:
    """What comes home is there after a pull, and nothing else is."""
    before = home.files()
    places = _places(home, output)
    home.pull(output)
    come = {path for path, content in home.files().items() if before.get(path) != content}
    assert come == {path for path, place in places.items() if place is Place.HOME}
    return places


def test_a_repository_in_the_results_of_two_ranks(home: Home) -> None:
    home.push({})
    home.rank(_HALF)
    home.rank(_REST)
    places = _agree(home, "out")
    assert places["out/r/config"] is places["out/r/HEAD"] is Place.WITHHELD


def test_a_repository_with_what_is_here(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, {"out/r/HEAD": File(b"ref: mine")})
    home.rank(_REST)
    assert _agree(home, "out")["out/r/config"] is Place.WITHHELD


def test_a_repository_whose_names_have_unseen_characters(home: Home) -> None:
    """Some file systems do not see them."""
    home.push({})
    home.rank({path.replace("HEAD", "HE\u200cAD"): n for path, n in {**_HALF, **_REST}.items()})
    assert _agree(home, "out")["out/r/HE\u200cAD"] is Place.WITHHELD


def test_an_output_that_leads_to_a_repository(home: Home) -> None:
    home.push({})
    inside = {path.replace("out/r", "work/.git"): node for path, node in {**_HALF, **_REST}.items()}
    inside.pop("out")
    home.rank({"work": Dir(), "out": Link("work/.git"), **inside})
    places = _agree(home, "out")
    assert Place.WITHHELD in places.values()


def test_a_folder_of_this_computer_that_stays(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, {".venv/mine": File(b"1")})
    home.rank({".venv": Dir(), ".venv/model": new(b"2"), "sub": Dir(), "sub/.venv": new(b"3")})
    assert _agree(home, ".") == {".venv/model": Place.OWN, "sub/.venv": Place.HOME}


_PATHS = (
    *("a", ".envrc", ".git/config", ".venv/x", "sub/.venv/y", "sub/.git", "out/a"),
    *("out/HEAD", "out/objects/o", "out/refs/r", "out/config", "HEAD", "objects/o", "refs/r"),
)
_SOME = st.frozensets(st.sampled_from(_PATHS))


@settings(max_examples=50)
@given(_SOME, _SOME, _SOME, _SOME, st.sampled_from([".", "out", "sub", ".venv"]))
def test_what_is_said_to_come_home_does(
    pushed: frozenset[str],
    here: frozenset[str],
    first: frozenset[str],
    second: frozenset[str],
    output: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.push(_tree(pushed, File(b"pushed")))
        home.rank(_tree(first, new(b"first"), pushed))
        home.rank(_tree(second, new(b"second"), pushed))
        home.into.mkdir()
        write_tree_at(home.into, {path: File(b"here") for path in here})
        places = _places(home, output)
        home.pull(output)
        files = home.files()
        for path, place in places.items():
            came = files.get(path) in (b"first", b"second")
            if place is not Place.OUTSIDE:
                assert came == (place is Place.HOME), (path, place)


def _tree(
    paths: frozenset[str], node: File, pushed: frozenset[str] = frozenset()
) -> dict[str, Node]:
    """Folders before what is in them; what was pushed and is not new stays as it was."""
    nodes = {path: node if path in paths else File(b"pushed") for path in {*paths, *pushed}}
    return {path: nodes.get(path, Dir()) for path in sorted(with_folders(nodes))}


def test_what_came_by_name_does_not_wait_any_more(home: Home) -> None:
    home.push({})
    home.rank({".envrc": new(b"1"), "a": new(b"2")})
    assert _places(home, ".") == {".envrc": Place.WITHHELD, "a": Place.HOME}
    home.pull(".envrc")
    assert _places(home, ".") == {".envrc": Place.HOME, "a": Place.HOME}
