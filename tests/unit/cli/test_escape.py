"""Control characters of machines and users do nothing to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.cli.render import PlainRenderer, TerminalRenderer, show_error
from sojourn.core.errors import SojournError
from sojourn.core.escape import escaped, escaped_lines
from sojourn.core.events import (
    LogLine,
    Note,
    Progress,
    StatusChanged,
    StepEnded,
    StepStarted,
    Warned,
)
from tests.support.waiting import until
from tests.unit.cli.shell import Shell

_EVIL = "a\x1b[2Jb\rc\x07d\x9be\u202ef"
_SHOWN = r"a\x1b[2Jb\rc\x07d\x9be\u202ef"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 日本 🚀", "plain ä 日本 🚀"),
        (_EVIL, _SHOWN),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x7f\u2028\u2066", r"\x7f\u2028\u2066"),
        ("\udc9b31m", r"\x9b31m"),
        ("half\ud800\udfff", r"half\ud800\udfff"),
        ("caf\udce9", "caf\udce9"),  # a name that is no UTF-8, and harmless
    ],
)
def test_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_lines_stay() -> None:
    assert escaped_lines("a\n\x1bb\n") == "a\n\\x1bb\n"


@given(st.text())
def test_nothing_is_left(text: str) -> None:
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", escaped(text))
    assert escaped(escaped(text)) == escaped(text)


def test_all_that_sojourn_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sojourn.cli.render._NO_BAR_BEFORE", 0.0)
    for renderer in (
        PlainRenderer(ranks=False, timestamps=False),
        TerminalRenderer(ranks=False, timestamps=False),
    ):
        for event in (
            Note(_EVIL),
            Warned(_EVIL),
            StepStarted(_EVIL),
            Progress(_EVIL, 1, 2),
            StepEnded(_EVIL, 1.0, _EVIL),
            StatusChanged("id", "failed", _EVIL),
        ):
            renderer(event)
        renderer.mark(_EVIL)
        renderer.result({}, [_EVIL, "x\ny"])
        renderer.result({}, _EVIL)
        show_error(SojournError(_EVIL, hint=_EVIL))
        renderer.close()
    out, err = capsys.readouterr()
    assert out == f"{_SHOWN}\nx\\ny\n{_SHOWN}\n" * 2
    assert err.count(_SHOWN) >= 14
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(err.replace("\x1b[A", ""))


def test_the_lines_of_a_script_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    PlainRenderer(ranks=False, timestamps=False)(LogLine(0, 1, "t", "\x1b[31mred\x1b[0m"))
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m\n"


def test_names_of_files(shell: Shell) -> None:
    script = r"""touch $'results/\e]0;title\a' $'results/two\nlines'"""
    shell.file("results/old", "")
    task = shell.detached(script, "--workdir", ".", "--output", "results")
    until(lambda: shell.state(task) == "succeeded")
    pulled = shell.ok("pull", task).splitlines()
    assert pulled == [r"results/\x1b]0;title\x07", r"results/two\nlines"]
    (shell.cwd / "results/\x1b]0;title\x07").unlink()
    assert shell.rows("pull", task)[-1]["files"] == ["results/\x1b]0;title\x07"]


def test_what_was_typed(shell: Shell) -> None:
    for args in (["list", "--\x1b[2J"], ["status", "\x1b[2J"], ["\x1b[2J"]):
        result = shell(*args)
        assert result.returncode in (1, 2)
        assert r"\x1b[2J" in result.stderr
        assert "\x1b" not in result.stderr
