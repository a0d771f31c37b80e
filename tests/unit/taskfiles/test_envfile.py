from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.taskfiles.envfile import read_env_file


def read(folder: Path, text: str) -> dict[str, str]:
    file = folder / ".env"
    file.write_bytes(text.encode())
    return read_env_file(file)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("A = spaced ", "spaced"),
        ("export A=exported", "exported"),
        ("  A=indented", "indented"),
        ("A=with # comment", "with"),
        ("A=not#comment", "not#comment"),
        ("A= # comment", ""),
        ("A=#comment", "#comment"),
        ("A=a=b", "a=b"),
        ("A=it's", "it's"),
        ("A=$HOME ${B}", "$HOME ${B}"),
        ("A='single # \\n $X'", "single # \\n $X"),
        ("A='two\nlines' # comment", "two\nlines"),
        ('A="double # \\n \\"q\\" \\\\ \\x"', 'double # \n "q" \\ x'),
        ('A="two\nlines"', "two\nlines"),
        ('A=""', ""),
        ("A=", ""),
        ("A", ""),
        ("A=windows\r", "windows"),
        ("A=é☃", "é☃"),
    ],
)
def test_a_line(tmp_path: Path, line: str, value: str) -> None:
    text = f"\ufeff# comment\n\n   # another\nFIRST=1\n{line}\nLAST=2"
    assert read(tmp_path, text) == {"FIRST": "1", "A": value, "LAST": "2"}


def test_the_last_one_counts(tmp_path: Path) -> None:
    assert read(tmp_path, "A=1\nA=2\n") == {"A": "2"}
    assert read(tmp_path, "") == {}


def test_globs_import(tmp_path: Path) -> None:
    assert read(tmp_path, "WANDB_*\n") == {"WANDB_*": ""}


def test_all_problems_with_their_lines_and_without_values(tmp_path: Path) -> None:
    text = (
        "A='two\nlines'\nse-cret\n1B=secret\nC='secret\n\nD=\"secret\" secret\nE* = secret\nF=1\n"
    )
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text)
    assert "secret" not in str(caught.value)
    assert "se-cret" not in str(caught.value)
    file = tmp_path / ".env"
    assert [p.path for p in caught.value.problems] == [f"{file}:{n}" for n in (3, 4, 5, 7, 8)]


@pytest.mark.parametrize("data", [b"A=\xff\n", b"A=a\0b\n"])
def test_what_no_variable_can_hold(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / ".env"
    file.write_bytes(data)
    with pytest.raises(InvalidInput):
        read_env_file(file)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="could not read file: No such file"):
        read_env_file(tmp_path / ".env")
