from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.engine.upload import Part, advice, size_in_words, summed

MANY = 5_001


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1, "1 byte"),
        (1536, "1.5 KiB"),
        (1023 << 20, "1.0 GiB"),
        (900 << 20, "900 MiB"),
        (1288490189, "1.2 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes(size: int, words: str) -> None:
    assert size_in_words(size) == words


def test_the_largest_parts_come_first() -> None:
    found = summed([("b/x", 5), ("a", 7), ("b/y/z", 4), ("c", 0)])
    assert found.parts == (Part("b", 2, 9), Part("a", 1, 7), Part("c", 1, 0))
    assert (found.files, found.bytes, str(found)) == (4, 16, "4 files, 16 bytes")


def test_many_small_files_are_much(tmp_path: Path) -> None:
    files = [("train.py", 1), *((f"web/node_modules/{n}/x.js", 1) for n in range(MANY))]
    assert advice(tmp_path, files, git=True) == (
        "To upload 1 file, 1 byte instead, add node_modules/ to .sojournignore."
    )
    assert advice(tmp_path, files[:-2], git=True) == ""


def test_the_better_of_two_ways_is_told(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("data/\n.venv/\n")
    files = [("train.py", 1), ("data/x", 60 << 20), (".venv/x", 70 << 20)]
    assert "use `--gitignore`" in advice(tmp_path, files, git=False)
    assert "add .venv/ to .sojournignore" in advice(tmp_path, files, git=True)
