"""What a group alone tells of a task."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.vm.listing import GroupView, status_of
from sojourn.core.report import Outcome, Report
from sojourn.core.status import State

_ENDED = {0: Report(0, 1, Outcome.SUCCEEDED, "", 0)}


@pytest.mark.parametrize("there", [{"serving": ["i-1"]}, {"starting": ["i-1"]}, {"leaving": ["i"]}])
@pytest.mark.parametrize("told", [{"reports": _ENDED}, {"marked": True, "stopped": True}])
def test_a_group_that_has_machines_does_not_tell_that_its_task_ended(
    told: dict[str, Any], there: dict[str, Any]
) -> None:
    ended = status_of(GroupView(1, 0, **told))
    assert ended
    assert ended.state in (State.SUCCEEDED, State.STOPPED)
    assert status_of(GroupView(1, 0, **told, **there)) is None
