"""An apply that waits for the end of a task, and a destroy that would not."""

from __future__ import annotations

import json

import pytest

from tests.support.waiting import until
from tests.terraform.hcl import SLEEPS, STORAGE, task
from tests.terraform.moments import ctrl_c
from tests.terraform.project import Project

pytestmark = pytest.mark.slow

_RUNNING = "is still running: destroying it ends its script"


def _tainted(project: Project) -> bool:
    state = json.loads((project.folder / "terraform.tfstate").read_text())
    [instance] = state["resources"][0]["instances"]
    return bool(instance.get("status") == "tainted")


def test_what_an_apply_waited_for_is_home_after_the_destroy(project: Project) -> None:
    (project.folder / "work").mkdir()
    script = "#!/bin/sh\nsleep 3\nmkdir results\necho done > results/end\n"
    project.write(task(script, STORAGE, "wait = true"))
    project.init()
    project.apply()
    assert (project.task()["state"], project.task()["wait"]) == ("succeeded", True)
    project.plan()
    assert "still running" not in project.destroy().said
    assert (project.folder / "work/results/end").read_text() == "done\n"


def test_an_apply_fails_with_a_script_that_does_and_the_next_one_runs_it_again(
    project: Project,
) -> None:
    project.write(task("#!/bin/sh\necho told; exit 3\n", "wait = true"))
    project.init()
    failed = project.apply(code=1)
    [own] = project.tasks()
    assert f"{own} failed, exit code 3" in failed.said
    assert f"sojourn logs {own}" in failed.said
    assert (list(project.known()), _tainted(project)) == ([own], True)
    project.write(task("#!/bin/sh\nexit 0\n", "wait = true"))
    project.apply()
    assert project.task()["state"] == "succeeded"
    project.destroy()


def test_the_log_is_a_file_whatever_became_of_the_script(project: Project) -> None:
    wait = ("wait = true", 'log_file = "results/run.txt"')
    results = project.folder / "results"
    project.write(task("#!/bin/sh\necho first; exit 3\n", wait[1]))
    project.init()
    assert "log_file: needs wait = true" in project.validate(code=1).said
    project.write(task("#!/bin/sh\necho first; exit 3\n", *wait))
    project.apply(code=1)
    assert (results / "run.txt").read_text() == "first\n"
    project.write(task("#!/bin/sh\necho second\n", *wait))
    project.apply()
    assert (results / "run.txt").read_text() == "second\n"
    assert (results / "run.1.txt").read_text() == "first\n"
    project.plan()
    (project.folder / "file").touch()
    project.write(task("#!/bin/sh\necho third\n", "wait = true", 'log_file = "file/run.txt"'))
    warned = project.apply().said
    assert "log_file: Could not write file/run.txt" in warned
    assert f"sojourn logs {project.tasks()[0]} --rank 0" in warned
    project.destroy()


def test_ctrl_c_ends_the_wait_and_not_the_task(project: Project) -> None:
    project.write(task("#!/bin/sh\necho up; sleep 600\n", "wait = true"))
    project.init()
    apply = project.start("apply", "-no-color", "-auto-approve")
    until(lambda: project.stored("store/logs/0000/*/*"), 60)
    ctrl_c(apply)
    ended = project.finish(apply)
    assert ended.code == 1
    assert "Stopped waiting" in ended.said
    assert (list(project.known()), _tainted(project)) == (project.tasks(), False)
    assert project.refreshed()["state"] == "running"
    project.plan()
    assert _RUNNING in project.destroy().said


def test_what_still_runs_is_told_of_before_it_is_destroyed_or_replaced(project: Project) -> None:
    project.write(task(SLEEPS))
    project.init()
    project.apply()
    [own] = project.tasks()
    planned = project.plan("-destroy", code=2)
    assert f"{own} {_RUNNING}" in planned.said
    assert f"sojourn logs --follow {own}" in planned.said
    project.write(task(SLEEPS, "timeout = 60"))
    assert _RUNNING in project.plan(code=2).said
    project.write(task(SLEEPS, "wait = true", 'timeouts { update = "2s" }'))
    waited = project.apply(code=1)
    assert f"Could not wait for the end of {own}: Timed out" in waited.said
    assert "(timeouts.update)" in waited.said
    assert (project.tasks(), _tainted(project)) == ([own], False)
    project.sojourn("stop", own)
    assert "still running" not in project.destroy().said
