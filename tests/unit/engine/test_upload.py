from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.engine.upload import Part, advice, left_out, summed
from tests.support.deep import make_deep, removed

MANY = 5_001


def test_the_largest_parts_come_first() -> None:
    found = summed([("b/x", 5), ("a", 7), ("b/y/z", 4), ("c", 0)])
    assert found.parts == (Part("b", 2, 9), Part("a", 1, 7), Part("c", 1, 0))
    assert (found.files, found.bytes, str(found)) == (4, 16, "4 files, 16 B")


def test_many_small_files_are_much(tmp_path: Path) -> None:
    files = [("train.py", 1), *((f"web/node_modules/{n}/x.js", 1) for n in range(MANY))]
    assert advice(tmp_path, files, git=True) == (
        "To upload 1 file, 1 B instead, add node_modules/ to .sojournignore."
    )
    assert advice(tmp_path, files[:-2], git=True) == ""


def test_the_better_of_two_ways_is_told(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("data/\n.venv/\n")
    files = [("train.py", 1), ("data/x", 60 << 20), (".venv/x", 70 << 20)]
    assert "use `--gitignore`" in advice(tmp_path, files, git=False)
    assert "add .venv/ to .sojournignore" in advice(tmp_path, files, git=True)


def test_what_is_removed_meanwhile_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("abc")
    assert left_out(tmp_path, ["gone", "kept"]) == "gone, kept (1 file, 3 B)"


def test_what_stays_at_home_may_be_deep(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "node_modules").mkdir()
    request.addfinalizer(removed(tmp_path / "node_modules"))
    make_deep(tmp_path / "node_modules", 3_000)  # twice as deep as a path can be long
    (tmp_path / ".git").symlink_to(tmp_path)
    told = left_out(tmp_path, ["node_modules", ".git", "gone"])
    assert told.startswith(".git, gone, node_modules (3,001 files, ")


def test_how_to_upload_less_is_told_of_a_deep_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("data/\n")
    deep = "/".join(["d"] * 500)  # asked about alone, before any folder above it
    files = [(f"{deep}/x", 10), (f"data/{deep}/y", 60 << 20)]
    assert "use `--gitignore`" in advice(tmp_path, files, git=False)
