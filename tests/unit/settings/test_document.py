"""Each value of a settings file is traced to its line, and what is wrong is told with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.errors import InvalidInput
from sojourn.settings.document import Document, read_document

_TEXT = """\
# a comment
[clouds.lab]

kind = "local"
folder = '''
x'''

[defaults]
exclude = [
  "a",   # more
  "b",
]
spot = 0
[profiles]
big.machine = "xl"
"""


def _read(folder: Path, text: str) -> Document:
    path = folder / "sojourn.toml"
    path.write_text(text)
    found = read_document(path)
    assert found
    return found


def test_lines_are_those_of_keys(tmp_path: Path) -> None:
    found = _read(tmp_path, _TEXT).lines
    assert {".".join(keys): line for keys, line in found.items()} == {
        "clouds": 2,
        "clouds.lab": 2,
        "clouds.lab.kind": 4,
        "clouds.lab.folder": 5,
        "defaults": 8,
        "defaults.exclude": 9,
        "defaults.spot": 13,
        "profiles": 14,
        "profiles.big": 15,
        "profiles.big.machine": 15,
    }


_PARTS = ("", "# x", "[t{n}]", "k{n} = 1", 'k{n} = """\na\n"""')


@given(st.lists(st.sampled_from(_PARTS), max_size=9))
def test_a_key_stands_on_its_line(parts: list[str]) -> None:
    lines = "\n".join(part.format(n=n) for n, part in enumerate(parts)).split("\n")
    document = Document(Path("x"), {}, "\n".join(lines))
    for keys, line in document.lines.items():
        assert lines[line - 1].startswith((f"{keys[-1]} =", f"[{keys[-1]}]"))


def test_what_is_no_key_is_traced_to_its_table(tmp_path: Path) -> None:
    document = _read(tmp_path, _TEXT)
    assert document.origin(("clouds", "lab", "kindd")).endswith("sojourn.toml:2")
    assert document.origin(("nothing",)).endswith("sojourn.toml")


def test_paths_are_short_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = _read(tmp_path, _TEXT)
    assert document.shown == str(tmp_path / "sojourn.toml")
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert document.shown == f"~/{tmp_path.name}/sojourn.toml"
    monkeypatch.chdir(tmp_path)
    assert document.shown == "sojourn.toml"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a = ", "invalid TOML: Invalid value"),
        (b"\xff", "not valid UTF-8"),
        (b"a = " + b"[" * 100_000, "invalid TOML: "),
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "sojourn.toml"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=f"sojourn.toml: {said}"):
        read_document(path)


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_document(tmp_path / "sojourn.toml") is None
    with pytest.raises(InvalidInput, match="could not read file"):
        read_document(tmp_path)


def test_a_value_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"sojourn.toml:1: clouds: must be a table"):
        _read(tmp_path, "clouds = 1\n").table("clouds", "lab")
