"""Events become output."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from sojourn.cli import render
from sojourn.cli.render import (
    JsonRenderer,
    PlainRenderer,
    TerminalRenderer,
    error_code,
    error_row,
    make_renderer,
)
from sojourn.core.errors import (
    AuthError,
    Cancelled,
    InvalidInput,
    MissingDependency,
    NotFound,
    SojournError,
    TaskFailed,
    Transient,
)
from sojourn.core.events import (
    Event,
    LogLine,
    Note,
    Progress,
    StatusChanged,
    StepEnded,
    StepStarted,
    Warned,
)

_TIME = "2026-01-31T12:34:56.123456Z"


def _line(text: str, rank: int = 0, attempt: int = 1, partial: bool = False) -> LogLine:
    return LogLine(rank, attempt, _TIME, text, partial)


def _shown(capsys: pytest.CaptureFixture[str], *events: Event, **how: bool) -> tuple[str, str]:
    renderer = PlainRenderer(**{"ranks": False, "timestamps": False, **how})
    for event in events:
        renderer(event)
    renderer.close()
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(capsys, _line("a"), _line(""), _line("b")) == ("a\n\nb\n", "")


def test_pieces_of_a_line_are_joined(capsys: pytest.CaptureFixture[str]) -> None:
    events = [_line("a", partial=True), _line("b", partial=True), _line("c"), _line("d")]
    assert _shown(capsys, *events) == ("abc\nd\n", "")
    out, _ = _shown(capsys, *events, ranks=True, timestamps=True)
    assert out == f"{_TIME} [0] abc\n{_TIME} [0] d\n"


def test_an_unfinished_line_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(capsys, _line("a", partial=True)) == ("a\n", "")


def test_interleaved_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        _line("a", 0, partial=True),
        _line("x", 1),
        _line("b", 0),
        _line("y", 1, partial=True),
        _line("z", 2, partial=True),
        _line("!", 2),
    ]
    out, _ = _shown(capsys, *events, ranks=True)
    assert out == "[0] a\n[1] x\n[0] b\n[1] y\n[2] z!\n"


def test_the_next_attempt_begins_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = _shown(capsys, _line("half", partial=True), _line("anew", attempt=2))
    assert out == "half\nanew\n"


_IN_A_LINE = (_line("a", partial=True), Note("note"), _line("b"))


def test_words_do_not_stand_in_a_line_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "both", "a") as out, open(tmp_path / "both", "a") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        renderer = PlainRenderer(ranks=False, timestamps=False)
        for event in _IN_A_LINE:
            renderer(event)
    assert (tmp_path / "both").read_text() == "a\nnote\nb\n"


def test_words_that_go_elsewhere_leave_the_lines_of_the_script_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _shown(capsys, *_IN_A_LINE) == ("ab\n", "note\n")


def test_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        StepStarted("Creating x"),
        Progress("Creating x", 1, 2),
        StepEnded("Creating x", 1.5),
        StatusChanged("id", "running"),
        StatusChanged("id", "failed", "why", 3),
        StatusChanged("id", "succeeded", "", 0),
        Warned("look"),
    ]
    out, err = _shown(capsys, *events)
    assert out == ""
    assert err.splitlines() == [
        "Creating x",
        "Task running",
        "Task failed, exit code 3: why",
        "Task succeeded",
        "Warning: look",
    ]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    events = [StepStarted("x"), Note("n"), StatusChanged("id", "running"), Warned("w"), _line("l")]
    assert _shown(capsys, *events, quiet=True) == ("l\n", "Warning: w\n")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    renderer = JsonRenderer()
    renderer(_line("é\n\x1b", partial=True))
    renderer.result({"type": "x"}, "not shown")
    renderer.close()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["text"] == "é\n\x1b"
    assert rows[1] == {"type": "x"}


def test_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    renderer = TerminalRenderer(ranks=False, timestamps=False)
    for event in (
        StepStarted("Uploading"),
        Progress("Uploading", 0, 100),
        Progress("Uploading", 50, 100),
        StepEnded("Uploading", 1.25),
        StepEnded("Other", 0.5, "no"),
        StatusChanged("id", "succeeded"),
        Note("note"),
        Warned("look"),
        _line("line"),
    ):
        renderer(event)
    renderer.close()
    captured = capsys.readouterr()
    assert captured.out == "line\n"
    assert "\x1b[32mUploaded\x1b[0m in 1.2 s\n" in captured.err
    assert "Other: \x1b[31mfailed\x1b[0m in 0.5 s\n" in captured.err
    assert "\x1b[32mTask succeeded\x1b[0m\nnote\n\x1b[33mWarning:\x1b[0m look\n" in captured.err


_ERASED = f"\r{' ' * 79}\r"


def _on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *events: Event
) -> str:
    monkeypatch.setenv("NO_COLOR", "1")
    renderer = TerminalRenderer(ranks=False, timestamps=False)
    for event in events:
        renderer(event)
    return capsys.readouterr().err


def test_the_step_at_work_is_on_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = StepStarted("Stopping")
    assert _on_a_terminal(capsys, monkeypatch, started) == "Stopping ..."
    assert _on_a_terminal(capsys, monkeypatch, started, StepEnded("Stopping", 1.25)) == (
        f"Stopping ...{_ERASED}Stopped in 1.2 s\n"
    )
    assert _on_a_terminal(capsys, monkeypatch, started, Note("note")) == (
        f"Stopping ...{_ERASED}note\nStopping ..."
    )


def test_of_several_steps_at_work_one_is_on_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [StepStarted("One"), StepStarted("Two"), StepEnded("Two", 1.0)]
    assert _on_a_terminal(capsys, monkeypatch, *events) == (
        f"One ...{_ERASED}Two ...{_ERASED}Two: done in 1.0 s\nOne ..."
    )


def test_a_step_whose_name_is_wider_than_the_screen_can_be_erased(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _on_a_terminal(capsys, monkeypatch, StepStarted("x" * 200)) == "x" * 79


@pytest.mark.parametrize("error", ["Cancelled", "Cancelled\nhint", "KeyboardInterrupt"])
def test_a_step_that_was_cancelled_has_not_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    shown = _on_a_terminal(capsys, monkeypatch, StepEnded("Stopping", 1.0, error))
    assert shown == "Stopping: cancelled in 1.0 s\n"


def test_a_bar_takes_the_place_of_the_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "_NO_BAR_BEFORE", 0.0)
    events = [StepStarted("Up"), Progress("Up", 50, 100), StepEnded("Up", 1.0)]
    shown = _on_a_terminal(capsys, monkeypatch, *events)
    assert shown.startswith(f"Up ...{_ERASED}")
    assert "50%|" in shown
    assert shown.endswith("\rUp: done in 1.0 s\n")


def test_no_color(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    TerminalRenderer(ranks=False, timestamps=False)(StatusChanged("id", "succeeded"))
    assert capsys.readouterr().err == "Task succeeded\n"


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_renderer(as_json=True), JsonRenderer)
    assert type(make_renderer(as_json=False)) is PlainRenderer

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Tty())
    assert isinstance(make_renderer(as_json=False), TerminalRenderer)
    assert type(make_renderer(as_json=False, quiet=True)) is PlainRenderer


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("a", "b"), 2),
        (MissingDependency("aws", "x"), 2),
        (AuthError("x"), 2),
        (NotFound("x"), 1),
        (Transient("x"), 1),
        (SojournError("x"), 1),
        (Cancelled(), 130),
        (TaskFailed("x", exit=7), 7),
    ],
)
def test_exit_codes(error: SojournError, code: int) -> None:
    assert error_code(error) == code
    assert error_row(error)["error"] == type(error).__name__


_DETAILS = [
    StepStarted("Creating x"),
    StepStarted("Storing the task", "Creating x"),
    StepEnded("Storing the task", 0.5, phase="Creating x"),
    StepEnded("Creating x", 1.0),
]


def test_details_of_a_step_are_shown_if_somebody_wants_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _shown(capsys, *_DETAILS) == ("", "Creating x\n")
    assert _shown(capsys, *_DETAILS, verbose=True) == ("", "Creating x\nStoring the task\n")


def test_on_a_terminal_the_detail_at_work_stands_behind_its_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _on_a_terminal(capsys, monkeypatch, *_DETAILS).split(_ERASED)
    assert shown == [
        "Creating x ...",
        "Creating x: storing the task ...",
        "Creating x ...",
        "Created x in 1.0 s\n",
    ]


def test_the_home_is_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert _shown(capsys, StepStarted("Creating folder /home/me/x")) == (
        "",
        "Creating folder ~/x\n",
    )


def test_an_error_is_red_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    render.show_error(SojournError("no"))
    assert capsys.readouterr().err == "Error: no\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    render.show_error(SojournError("no"))
    assert capsys.readouterr().err == "\x1b[31mError:\x1b[0m no\n"
