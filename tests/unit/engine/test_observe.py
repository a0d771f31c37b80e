from __future__ import annotations

from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import NotFound
from sojourn.core.ids import TaskId
from sojourn.core.status import INCOMPLETE, RankStatus, State, Status
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


def _follow(monkeypatch: pytest.MonkeyPatch, *seen: Status) -> NotFound:
    states = iter(seen)
    monkeypatch.setattr(observe, "status", lambda *_: next(states))
    cloud: Any = _Quiet()
    with pytest.raises(NotFound) as caught:
        list(observe.follow(Context(), cloud, TaskId.deterministic("x")))
    return caught.value


def test_a_task_that_is_deleted_while_it_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    error = _follow(monkeypatch, _RUNNING, INCOMPLETE)
    assert error.message == f"Task {TaskId.deterministic('x')} was deleted by another command"


def test_a_task_that_was_never_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "its creation was not completed" in _follow(monkeypatch, INCOMPLETE).message
