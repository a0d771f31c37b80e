from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.task import Task
from sojourn.terraform import pending
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.resource import Call
from sojourn.terraform.plugin.values import Object, whole
from sojourn.terraform.task import TaskResource
from sojourn.terraform.taskschema import TASK

_ID = "tpi-named-x"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def _object(id: str, **storage: str) -> Object:
    values = {"id": id, "cloud": "local", "script": "#!/bin/sh", "storage": [storage]}
    made = whole(values, TASK.whole)
    assert made
    return made


def _plan(prior: Object | None, planned: Object) -> list[Diagnostic]:
    call = Call(Log("test"), threading.Event(), 60)
    return list(TaskResource().plan(call, prior, planned))


def _broken_off() -> str:
    """The id of a task whose creation was broken off."""
    with (
        pytest.raises(ZeroDivisionError),
        pending.creation(Context(), Task("#!/bin/sh")) as (own, _),
    ):
        raise ZeroDivisionError
    [(left, _, _)] = pending.broken_off()
    assert left == str(own)
    return left


def test_a_task_that_stays_as_it_is_needs_no_note_any_more() -> None:
    """It is in a state, and nobody may take it over; a plan without a refresh sees it only here."""
    state = _object(_broken_off())
    assert _plan(state, dict(state)) == []
    assert list(pending.broken_off()) == []


def test_a_workdir_that_is_missing_matters_to_new_tasks_only() -> None:
    prior, planned = (_object(_ID, workdir="gone", output=name) for name in "ab")
    [warning] = _plan(None, planned)
    assert warning.warning
    assert "does not exist yet" in warning.summary
    assert _plan(prior, planned) == []
