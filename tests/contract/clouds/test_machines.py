"""Machines that stay: tasks that have no end of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import Handle, Machine, State
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, Conflict, InvalidInput, TaskFailed
from sojourn.core.events import StepStarted
from tests.contract.clouds.lab import WAITING, Lab, answers, log_of
from tests.support.waiting import until

_STARTUP = "#!/bin/sh\nmkdir -p output; echo $SOJOURN_ATTEMPT >>output/starts; echo started\n"


def _create(lab: Lab, script: str = _STARTUP, **more: Any) -> Machine:
    fields = {"workdir": str(lab.workdir), "output": "output", **more}
    return Machine.create(script, cloud=lab.kit.cloud, on_event=lab.events.append, **fields)


def test_a_machine_answers_when_it_is_there_and_stays(lab: Lab) -> None:
    machine = _create(lab)
    assert machine.exec(["echo", "here"]).stdout == b"here\n"
    assert machine.status().state is State.RUNNING
    assert machine.address
    until(lambda: log_of(machine) == ["started"])
    assert [found.id for found, _ in Machine.all()] == [machine.id]
    assert Machine.get(machine.id).exec("cat output/starts").stdout == b"1\n"
    machine.delete()
    assert lab.output() == {"starts": "1\n"}


def test_after_a_loss_the_script_runs_again_in_the_same_workdir(lab: Lab, tmp_path: Path) -> None:
    machine = _create(lab)
    machine.exec("echo mine >output/mine")
    lab.until_stored(machine, "mine", tmp_path / "home")
    lab.kit.lose_agent(machine, 0)
    until(lambda: log_of(machine).count("started") == 2 and answers(machine))
    assert machine.exec("cat output/starts output/mine").stdout == b"1\n2\nmine\n"
    machine.delete(fetch=False)


def test_stop_and_start(lab: Lab) -> None:
    machine = _create(lab)
    machine.stop()
    assert machine.status().state is State.STOPPED
    machine.start()
    until(lambda: log_of(machine).count("started") == 2)
    machine.delete()
    assert lab.output() == {"starts": "1\n2\n"}


def test_a_script_that_fails_leaves_the_machine_to_look_at(lab: Lab) -> None:
    machine = _create(lab, "#!/bin/sh\necho oh; exit 3\n")
    said = "sojourn: the script ended with exit code 3; the machine stays"
    until(lambda: log_of(machine) == ["oh", said])
    assert machine.exec(["true"]).returncode == 0
    machine.delete(fetch=False)


def test_one_that_ends_before_it_answers_is_told_and_removed(lab: Lab) -> None:
    """The shell that runs the script, and would stay, is killed by it.

    A command may run in the instant before: then it did answer, and another one has to be made.
    """
    said = ""
    for _ in range(10):
        try:
            _create(lab, "#!/bin/sh\necho last words; kill -9 $PPID\n").delete(fetch=False)
        except TaskFailed as error:
            said = str(error)
            break
    assert re.search(r"(?s)failed: .*The log ends with:\n  last words", said)
    assert sojourn.list_tasks() == []


def test_an_interrupted_creation_leaves_nothing(lab: Lab) -> None:
    def cancel_at(event: object) -> None:
        if isinstance(event, StepStarted) and event.step == "Waiting for the machine":
            ctx.cancel()

    ctx = Context(cancel_at)
    with pytest.raises(Cancelled):
        Machine.create(_STARTUP, cloud=lab.kit.cloud, ctx=ctx)
    assert sojourn.list_tasks() == []


def test_a_task_is_no_machine(lab: Lab) -> None:
    handle: Handle = lab.create(WAITING)
    with pytest.raises(Conflict, match="is a task, not a machine"):
        Machine.get(handle.id)
    assert Machine.all() == []
    handle.delete(fetch=False)


def test_bad_input_is_refused_by_its_own_name(lab: Lab) -> None:
    with pytest.raises(InvalidInput, match="startup_script: must start with a shebang"):
        _create(lab, "echo")
    with pytest.raises(InvalidInput, match="idle_timeout: must be a number of seconds"):
        _create(lab, idle_timeout=-1)
