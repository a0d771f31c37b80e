from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sojourn.core.activity import Activity, Doing
from sojourn.core.context import Context
from sojourn.core.errors import NotFound
from sojourn.core.events import LogLine, Note, StatusChanged
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Fleet, Member
from sojourn.core.status import INCOMPLETE, RankRecord, RankStatus, State, Status
from sojourn.core.task import Task
from sojourn.engine import observe


class _Quiet:
    """A cloud whose task prints nothing."""

    name = "quiet"

    @property
    def features(self) -> Any:
        return self

    poll = 0.0

    def data(self, id: TaskId) -> Any:
        return self

    def cursor(self) -> None:
        return None

    def watch(self, ctx: Context) -> None:
        return None

    def logs(self, ctx: Context, cursor: object, part: object) -> list[Any]:
        return []


_RUNNING = Status(State.RUNNING, "", None, (RankStatus(0, State.RUNNING),))


def _follow(monkeypatch: pytest.MonkeyPatch, *seen: Status, ctx: Context | None = None) -> NotFound:
    states = iter(seen)
    monkeypatch.setattr(observe, "status", lambda *_: next(states))
    cloud: Any = _Quiet()
    with pytest.raises(NotFound) as caught:
        list(observe.follow(ctx or Context(), cloud, TaskId.deterministic("x")))
    return caught.value


def test_a_task_that_is_deleted_while_it_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    error = _follow(monkeypatch, _RUNNING, INCOMPLETE)
    assert error.message == f"Task {TaskId.deterministic('x')} was deleted by another command"


def test_a_task_that_was_never_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "creation did not finish" in _follow(monkeypatch, INCOMPLETE).message


@pytest.mark.parametrize(
    ("found", "state"),
    [((Member("m", "", ""),), State.RUNNING), ((), State.RECOVERING)],
    ids=["it just started", "it is gone"],
)
def test_a_machine_that_the_first_look_did_not_see(found: tuple[Member, ...], state: State) -> None:
    looks = [Fleet(1, ()), Fleet(1, found)]

    class _Starting(_Quiet):
        def scaler(self, id: TaskId) -> Any:
            return self

        def fleet(self, ctx: Context) -> Fleet:
            return looks.pop(0)

        def load(self, ctx: Context) -> Task:
            return Task("#!/bin/sh\n")

        def records(self, ctx: Context, parallelism: int) -> list[RankRecord]:
            return [RankRecord(0, 1, "m")]

        def obstacle(self, ctx: Context) -> str:
            return ""

    cloud: Any = _Starting()
    assert observe.status(Context(), cloud, TaskId.deterministic("x")).state is state
    assert looks == []


def _provisioning(reason: str = "", done: int = 0) -> Status:
    activity = Activity(Doing.RESTORING, done, 10) if done else None
    reason = activity.text if activity else reason
    ranks = (RankStatus(0, State.PROVISIONING, activity=activity),)
    return Status(State.PROVISIONING, reason, None, ranks, activity)


def test_how_far_a_transfer_is_is_not_told_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observe, "_RESTORES_WITHIN", 0.0)
    seen = [
        _provisioning(done=1),
        _provisioning(done=5),
        _provisioning(done=10),
        _provisioning("the machine is starting"),
        _RUNNING,
        INCOMPLETE,
    ]
    told: list[Any] = []
    _follow(monkeypatch, *seen, ctx=Context(told.append))
    states = [event.reason for event in told if isinstance(event, StatusChanged)]
    assert states == [seen[0].reason, seen[3].reason, ""]


def _on(machine: str, attempt: int) -> Status:
    ranks = (RankStatus(0, State.RUNNING, attempt, machine=machine),)
    return Status(State.RUNNING, "", None, ranks)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("b", "Rank 0 resumed on a new machine (attempt 2)"),
        ("a", "Rank 0 restarted on the same machine (attempt 2)"),
    ],
)
@pytest.mark.parametrize("first", ["state", "line"])
def test_where_the_next_attempt_is(
    monkeypatch: pytest.MonkeyPatch, machine: str, said: str, first: str
) -> None:
    told: list[Any] = []
    seen = [_on("a", 1), _on(machine, 2), INCOMPLETE]
    if first == "line":  # the attempt began right after the look at the state
        lines = iter([[], [LogLine(0, 2, "", "x")]])
        monkeypatch.setattr(_Quiet, "logs", lambda *_: next(lines))
        seen.insert(1, _on("a", 1))
    _follow(monkeypatch, *seen, ctx=Context(told.append))
    assert [event.message for event in told if isinstance(event, Note)] == [said]


_SUCCEEDED = Status(State.SUCCEEDED, "", 0, (RankStatus(0, State.SUCCEEDED, 1, 0),))


def _restoring(doing: Doing = Doing.RESTORING) -> Status:
    activity = Activity(doing, 1, 2)
    ranks = (RankStatus(0, State.RUNNING, 1, reason=activity.text, activity=activity),)
    return Status(State.RUNNING, activity.text, None, ranks, activity)


@pytest.mark.parametrize("doing", [Doing.RESTORING, Doing.GATHERING])
@pytest.mark.parametrize("late", [0, 2])
def test_what_a_machine_does_before_the_script_is_told_before_that_the_task_runs(
    monkeypatch: pytest.MonkeyPatch, doing: Doing, late: int
) -> None:
    """It says so a moment after it began, and for a moment after the script has begun."""
    restoring = _restoring(doing)
    seen = [_provisioning("x"), _RUNNING, _RUNNING, *[restoring] * 2, *[restoring] * late, _RUNNING]
    lines = iter([*[[]] * 4, [LogLine(0, 1, "", "1")]])
    monkeypatch.setattr(_Quiet, "logs", lambda *_: next(lines, []))
    told: list[Any] = []
    _follow(monkeypatch, *seen, INCOMPLETE, ctx=Context(told.append))
    states = [(each.state, each.reason) for each in told if isinstance(each, StatusChanged)]
    assert states == [("provisioning", "x"), ("running", restoring.reason), ("running", "")]


def test_a_script_that_prints_nothing_runs_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe._Follower, "_are_gone", lambda *_: True)
    told: list[Any] = []
    short = iter([_provisioning("x"), _RUNNING, _SUCCEEDED])
    monkeypatch.setattr(observe, "status", lambda *_: next(short))
    cloud: Any = _Quiet()
    assert list(observe.follow(Context(told.append), cloud, TaskId.deterministic("x"))) == []
    states = [each.state for each in told if isinstance(each, StatusChanged)]
    assert states == ["provisioning", "running", "succeeded"]
    told.clear()
    monkeypatch.setattr(observe, "_RESTORES_WITHIN", 0.02)
    monkeypatch.setattr(_Quiet, "poll", 0.01)
    looks = [_provisioning("x"), *[_RUNNING] * 20, INCOMPLETE]
    _follow(monkeypatch, *looks, ctx=Context(told.append))
    states = [each.state for each in told if isinstance(each, StatusChanged)]
    assert states == ["provisioning", "running"]


@pytest.mark.parametrize(
    ("seen", "lines", "told"),
    [
        ([_provisioning("x"), _provisioning("x"), _RUNNING], [[], ["1"]], "provisioning running 1"),
        ([_RUNNING], [["1"]], "running 1"),
        ([_provisioning("x"), _SUCCEEDED], [[], ["1"]], "provisioning running 1 succeeded"),
        ([_SUCCEEDED], [["1"]], "1 succeeded"),
        ([_RUNNING, _RUNNING], [["1"], ["2"]], "running 1 2"),
    ],
    ids=["late state", "first look", "short script", "over before", "more lines"],
)
def test_a_task_runs_before_its_first_line(
    monkeypatch: pytest.MonkeyPatch, seen: list[Status], lines: list[list[str]], told: str
) -> None:
    looks = iter(lines)
    monkeypatch.setattr(
        _Quiet, "logs", lambda *_: [LogLine(0, 1, "", each) for each in next(looks, [])]
    )
    monkeypatch.setattr(observe._Follower, "_are_gone", lambda *_: True)
    states = iter([*seen, INCOMPLETE])
    monkeypatch.setattr(observe, "status", lambda *_: next(states))
    said: list[str] = []

    def note(event: object) -> None:
        if isinstance(event, StatusChanged):
            said.append(event.state)

    cloud: Any = _Quiet()
    with suppress(NotFound):
        for line in observe.follow(Context(note), cloud, TaskId.deterministic("x")):
            said.append(line.text)
    assert " ".join(said) == told


def test_the_last_lines_of_a_lost_machine_do_not_begin_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Status(State.RECOVERING, "lost", None, (RankStatus(0, State.RECOVERING, 1),))
    looks = iter([[], [], [LogLine(0, 1, "", "x")], []])
    monkeypatch.setattr(_Quiet, "logs", lambda *_: next(looks))
    told: list[Any] = []
    _follow(monkeypatch, _on("a", 1), lost, lost, lost, INCOMPLETE, ctx=Context(told.append))
    states = [event.state for event in told if isinstance(event, StatusChanged)]
    assert states == ["running", "recovering"]
