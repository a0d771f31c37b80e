"""Machines that stay after the end of a task, for another run of it."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn import Conflict, Handle, InvalidInput, State
from sojourn.clouds import load
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.storage import layout
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until

COPYING = "mkdir -p output; cat input > output/$SOJOURN_RANK; echo ran"


def warm(lab: Lab, script: str = COPYING, **more: Any) -> Handle:
    if not load(lab.kit.cloud).features.warm:
        with pytest.raises(InvalidInput, match="warm: not supported on this cloud"):
            lab.create(script, name="warm", warm=600, **more)
        pytest.skip("this cloud keeps no machines: Features.warm says so")
    return lab.create(script, name="warm", parallelism=2, gang=True, warm=600, **more)


def machines(handle: Handle) -> set[str]:
    return {rank.machine for rank in handle.status().ranks}


def test_another_run_has_new_files_and_the_same_machines(lab: Lab) -> None:
    (lab.workdir / "input").write_text("one")
    handle = warm(lab)
    assert handle.wait().status is State.SUCCEEDED
    assert handle.machines(), "whoever waits for the end does not wait until they are gone"
    first = machines(handle)
    (lab.workdir / "input").write_text("two")
    again = warm(lab, f"{COPYING} again")
    assert lab.output() == {"0": "one", "1": "one"}  # home before anything of it was removed
    assert again.wait().status is State.SUCCEEDED
    assert machines(again) == first
    assert log_of(again) == ["ran again", "ran again"]
    again.delete()
    assert lab.output() == {"0": "two", "1": "two"}


def test_a_run_that_has_not_ended_is_not_disturbed(lab: Lab) -> None:
    handle = warm(lab, "echo up; sleep 300")
    until(lambda: log_of(handle) == ["up", "up"])
    with pytest.raises(Conflict, match="is still running"):
        warm(lab, "echo other")
    handle.delete()


def test_other_machines_are_another_task(lab: Lab) -> None:
    handle = warm(lab, "true")
    handle.wait()
    with pytest.raises(Conflict, match="keeps its machines for another run, but tags changed"):
        warm(lab, "true", tags={"a": "b"})
    handle.delete()


def test_machines_that_are_gone_meanwhile_are_made_again(lab: Lab) -> None:
    handle = warm(lab, "echo one")
    handle.wait()
    handle.stop()
    again = warm(lab, "echo two")
    assert again.wait().status is State.SUCCEEDED
    assert log_of(again) == ["two", "two"]
    again.delete()


def test_another_run_whose_command_was_killed_is_repeated(lab: Lab) -> None:
    handle = warm(lab, "echo one")
    handle.wait()
    store = load(lab.kit.cloud).data(TaskId.parse(handle.id))._at(Context())  # type: ignore[attr-defined]
    store.put(layout.run_path(2), b"")
    store.delete([item.path for item in store.list(layout.REPORTS)])
    again = warm(lab, "echo two")
    assert again.wait().status is State.SUCCEEDED
    assert log_of(again) == ["two", "two"]
    again.delete()
