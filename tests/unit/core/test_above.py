"""Answers that paths have from the folders above them."""

from __future__ import annotations

import pytest

from sojourn.core.above import FromAbove, with_folders
from sojourn.storage.guard import Guard

DEEP = "/".join(["d"] * 3000)


def test_each_folder_is_asked_about_once_however_many_paths_are_below_it() -> None:
    asked: list[str] = []

    def ask(path: str) -> str:
        asked.append(path)
        return path if path.endswith("x") else ""

    answers = FromAbove(ask, "")
    for number in range(100):
        assert answers.above(f"{DEEP}/{number}") == ""
    assert len(asked) == len(set(asked)) == 3000
    assert answers.above("a/x/b/x/c") == "a/x"
    assert answers.above("x") == ""
    assert answers.above("x/y") == "x"


def test_the_top_answers_for_all() -> None:
    assert FromAbove(lambda path: path == "never", top=True).above("a/b")


def test_paths_with_all_folders_that_they_are_in() -> None:
    assert with_folders(["a/b/c", "a/d", "e"]) == {"a", "a/b", "a/b/c", "a/d", "e"}
    assert len(with_folders([DEEP] * 100)) == 3000


def test_a_guard_looks_at_each_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def look(path: str) -> str:
        looked.append(path)
        return ""

    monkeypatch.setattr("sojourn.storage.guard.guarded_part", look)
    paths = [DEEP[:end] for end in range(1, len(DEEP) + 1, 2)]
    guard = Guard(".", paths)
    assert not any(map(guard.part, paths))
    assert sum(map(len, looked)) < 4 * len(DEEP)  # not the square of it
