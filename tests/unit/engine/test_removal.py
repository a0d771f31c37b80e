"""What is written down of a task that goes."""

from __future__ import annotations

import pytest

from sojourn.core.activity import Activity, Doing
from sojourn.core.status import RankRecord
from sojourn.core.task import Task
from sojourn.engine.removal import _why_unfinished

_SCRIPT = "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("stay", "doing", "why"),
    [
        (False, None, "its script had not ended"),
        (False, Doing.FILES_FULL, "its script had not ended"),
        (False, Doing.ENDED_FULL, "its results were not stored"),
        (True, None, ""),
    ],
)
def test_why_a_task_that_goes_has_no_end(stay: bool, doing: Doing | None, why: str) -> None:
    record = RankRecord(0, attempt=1, activity=Activity(doing) if doing else None)
    assert _why_unfinished(Task(script=_SCRIPT, stay=stay), [RankRecord(1), record]) == why
