"""What was not uploaded by default is the user's own: a pull leaves it as it is."""

from __future__ import annotations

import pytest

from tests.support.trees import Dir, File, Link, Node
from tests.unit.storage.home import NEW, Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

_THEIRS: dict[str, Node] = {
    ".venv": Dir(),
    ".venv/pyvenv.cfg": new(b"theirs"),
    "web": Dir(),
    "web/node_modules": Dir(),
    "web/node_modules/x.js": new(b"theirs"),
    "__pycache__": Dir(),
    "__pycache__/a.pyc": new(b"theirs"),
    "result": new(b"1"),
}
_MINE: dict[str, Node] = {
    ".venv/pyvenv.cfg": File(b"mine"),
    "web/node_modules/y.js": File(b"mine"),
    "__pycache__/a.pyc": File(b"mine"),
}


def test_what_a_task_never_had_is_neither_renamed_nor_removed(home: Home) -> None:
    home.push({"a": File(b"1")})
    write_tree_at(home.into, {**_MINE, "a": File(b"1")})
    home.rank({"a": File(b"1"), "result": new(b"1")})
    assert home.pull(".") == ["result"]
    assert home.files() == {**dict.fromkeys(_MINE, b"mine"), "a": b"1", "result": b"1"}
    assert home.warnings == []


def test_folders_of_the_same_names_are_not_mixed(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, _MINE)
    home.rank(_THEIRS)
    assert home.pull(".") == ["result"]
    assert home.files() == {**dict.fromkeys(_MINE, b"mine"), "result": b"1"}
    assert home.warnings == [
        "Not downloading .venv, web/node_modules: already here, and was not uploaded"
    ]


def test_a_symlink_of_such_a_name_stays(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, {".venv": Link("elsewhere")})
    home.rank(_THEIRS)
    home.pull(".")
    assert home.files()[".venv"] == "elsewhere"


def test_they_come_home_if_there_are_none_here_and_again_after_that(home: Home) -> None:
    home.push({})
    home.rank(_THEIRS)
    assert ".venv/pyvenv.cfg" in home.pull(".")
    home.update(0, {**_THEIRS, ".venv/pyvenv.cfg": File(b"newer", mtime=NEW + 1)})
    assert home.pull(".") == [".venv/pyvenv.cfg"]
    assert home.warnings == []


def test_they_come_home_if_the_output_names_them(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, {".venv/pyvenv.cfg": File(b"mine")})
    home.rank(_THEIRS)
    assert home.pull(".venv") == [".venv/pyvenv.cfg"]
    assert home.files() == {".venv/pyvenv.cfg": b"theirs", ".venv/pyvenv.cfg.local": b"mine"}


def test_what_was_uploaded_after_all_is_replaced_as_all_else(home: Home) -> None:
    pushed: dict[str, Node] = {".venv": Dir(), ".venv/pyvenv.cfg": File(b"mine")}
    home.push(pushed)
    write_tree_at(home.into, {".venv/pyvenv.cfg": File(b"mine")})
    home.rank(_THEIRS)
    assert ".venv/pyvenv.cfg" in home.pull(".")
    assert home.files()[".venv/pyvenv.cfg"] == b"theirs"
