from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from sojourn.core.errors import Cancelled, InvalidInput, NotFound, Problem, Transient
from sojourn.core.events import (
    Event,
    Note,
    Progress,
    StatusChanged,
    StepEnded,
    StepStarted,
    Warned,
)
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.resource import Call
from sojourn.terraform.translate import context, diagnostics, failing


def _call(seconds: float = 60.0) -> Call:
    return Call(Log("test", verb="create"), threading.Event(), seconds)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def _told(
    capsys: pytest.CaptureFixture[str], events: Iterable[Event]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Level, message and further fields of the line of each event."""
    ctx = context(_call())
    for event in events:
        ctx.emit(event)
    return [
        (line["@level"], line["@message"], {k: v for k, v in line.items() if k[0] != "@"})
        for line in _lines(capsys)
    ]


class TestEvents:
    def test_steps_have_numbers_and_times(self, capsys: pytest.CaptureFixture[str]) -> None:
        events = [
            StepStarted("One"),
            StepEnded("One", 0.25),
            StepStarted("Two"),
            StepEnded("Two", 1.0, "it broke\ntry again"),
        ]
        assert _told(capsys, events) == [
            ("info", "Step 1: One", {"verb": "create", "step": 1}),
            ("info", "One: done in 0.25 s", {"verb": "create", "step": 1, "seconds": 0.25}),
            ("info", "Step 2: Two", {"verb": "create", "step": 2}),
            (
                "error",
                "Two: failed after 1 s",
                {"verb": "create", "step": 2, "seconds": 1.0, "error": "it broke try again"},
            ),
        ]

    def test_progress_is_told_now_and_then_and_at_its_end(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        events = [
            Progress("Uploading", 1, 10),
            Progress("Uploading", 2, 10),
            Progress("Other", 1, -1, "files"),
            Progress("Uploading", 10, 10),
        ]
        told = _told(capsys, events)
        assert [(level, text) for level, text, _ in told] == [
            ("info", "Uploading: 1 of 10 bytes"),
            ("debug", "Uploading: 2 of 10 bytes"),
            ("info", "Other: 1 files"),
            ("info", "Uploading: 10 of 10 bytes"),
        ]
        assert (told[0][2]["done"], told[0][2]["total"]) == (1, 10)

    def test_notes_are_info(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert _told(capsys, [Note("by the way")])[0][:2] == ("info", "by the way")

    def test_warnings_are_told_to_the_user_as_well(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call = _call()
        context(call).emit(Warned("look out"))
        assert [line["@level"] for line in _lines(capsys)] == ["warn"]
        assert call.warnings == [Diagnostic("look out", warning=True)]

    def test_others_are_not_for_the_log(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert _told(capsys, [StatusChanged("id", "running")]) == []


class TestContext:
    def test_stops_when_terraform_says_so(self) -> None:
        call = _call()
        ctx = context(call)
        ctx.check()
        call.stopped.set()
        with pytest.raises(Cancelled):
            ctx.check()

    def test_ends_in_time(self) -> None:
        with pytest.raises(Transient):
            context(_call(0)).check()


class TestErrors:
    def test_a_message_and_what_to_do(self) -> None:
        error = NotFound("it is gone", hint="make it again")
        assert diagnostics(error) == [Diagnostic("it is gone", "make it again")]

    def test_problems_point_to_attributes(self) -> None:
        error = InvalidInput("script", "is empty", Problem("storage.workdir", "is a file"))
        assert diagnostics(error) == [
            Diagnostic("script: is empty", "", ("script",)),
            Diagnostic("storage.workdir: is a file", "", ("storage", 0, "workdir")),
        ]

    def test_of_the_computer_are_no_defects(self) -> None:
        error = PermissionError(13, "Permission denied", "/some/file")
        with pytest.raises(Failure) as failed, failing("repair it"):
            raise error
        assert failed.value.diagnostics == (
            Diagnostic("/some/file: Permission denied", "repair it"),
        )
        assert failed.value.state is None

    def test_of_ours_keep_their_own_advice(self) -> None:
        with pytest.raises(Failure) as failed, failing("repair it"):
            raise NotFound("it is gone", hint="make it again")
        assert failed.value.diagnostics == (Diagnostic("it is gone", "make it again"),)

    def test_failures_and_defects_pass(self) -> None:
        with pytest.raises(ZeroDivisionError), failing():
            raise ZeroDivisionError
        with pytest.raises(Failure, match="as it is"), failing():
            raise Failure([Diagnostic("as it is")], {"id": "kept"})
