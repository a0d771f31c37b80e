from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sojourn import api
from sojourn.cli.following import attended, exit_code, looked_at
from sojourn.cli.render import PlainRenderer
from sojourn.cli.session import Session
from sojourn.core.errors import AuthError, Cancelled, SojournError, Transient
from sojourn.core.events import LogLine
from sojourn.core.status import State, Status


class _Handle:
    id = short = "tpi-x"
    stopped = 0

    def logs(self, **_: Any) -> Iterator[LogLine]:
        yield LogLine(0, 1, "t", "line")
        raise Cancelled

    def stop(self) -> None:
        self.stopped += 1


def test_a_second_ctrl_c_right_after_the_first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    handle: Any = _Handle()
    monkeypatch.setattr(api, "get", lambda *_, **__: handle)
    session = Session(PlainRenderer(ranks=False, timestamps=False))
    session.on_signal(2, None)
    session.on_signal(2, None)
    with pytest.raises(Cancelled, match="Stopped"):
        attended(session, handle)
    assert handle.stopped == 1


def test_who_is_terminated_is_not_asked_to_press_anything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handle: Any = _Handle()
    session = Session(PlainRenderer(ranks=False, timestamps=False))
    for _ in range(3):  # `timeout` sends it to the command and to its group
        session.on_signal(15, None)
    with pytest.raises(Cancelled, match="Detached; the task keeps running"):
        attended(session, handle)
    assert "Press" not in capsys.readouterr().err
    assert handle.stopped == 0


def test_who_is_terminated_after_a_ctrl_c_does_not_stop_the_task() -> None:
    handle: Any = _Handle()
    session = Session(PlainRenderer(ranks=False, timestamps=False))
    session.on_signal(2, None)
    session.on_signal(15, None)
    with pytest.raises(Cancelled, match="Detached; the task keeps running"):
        attended(session, handle)
    assert handle.stopped == 0


@pytest.mark.parametrize("kind", [AuthError, Transient])
def test_who_cannot_look_any_more_learns_how_to_come_back(kind: type[SojournError]) -> None:
    class LoggedOut(_Handle):
        def logs(self, **_: Any) -> Iterator[LogLine]:
            yield LogLine(0, 1, "t", "line")
            raise kind("The token has expired", hint="Log in.")

    handle: Any = LoggedOut()
    session = Session(PlainRenderer(ranks=False, timestamps=False))
    with pytest.raises(kind) as caught:
        attended(session, handle)
    assert caught.value.hint == (
        "Log in.\nThe task keeps running. "
        "Run `sojourn attach tpi-x` to reattach and download the results at the end.\n"
        "Run `sojourn pull tpi-x` to download the results so far.\n"
        "Run `sojourn delete tpi-x` to stop it, download the results and delete it."
    )
    with pytest.raises(kind) as caught:
        looked_at(session, handle)
    assert caught.value.hint == (
        "Log in.\nThe task keeps running. Run `sojourn logs tpi-x --follow` to follow it again."
    )


def test_ctrl_c_while_looking_stops_nothing() -> None:
    handle: Any = _Handle()
    session = Session(PlainRenderer(ranks=False, timestamps=False))
    session.on_signal(2, None)
    session.on_signal(2, None)
    with pytest.raises(Cancelled, match="Stopped following; the task keeps running") as caught:
        looked_at(session, handle)
    assert (str(caught.value).count("\n"), handle.stopped) == (0, 0)


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        (State.SUCCEEDED, 0, 0),
        (State.FAILED, 3, 3),
        (State.FAILED, None, 1),
        (State.TIMED_OUT, 143, 124),
        (State.STOPPED, None, 130),
    ],
)
def test_exit_codes(state: State, code: int | None, expected: int) -> None:
    assert exit_code(Status(state, "", code, ())) == expected
