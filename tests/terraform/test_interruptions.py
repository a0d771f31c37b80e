"""Whatever is interrupted or killed, at whatever moment: repeating the command completes it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.terraform.hcl import SLEEPS, STORAGE, task
from tests.terraform.moments import (
    caught,
    ctrl_c,
    end_the_upload,
    endless_upload,
    go_on,
    held,
    held_at_start,
    held_at_upload,
    kill,
    long_upload,
    provider_ends,
)
from tests.terraform.project import Project

pytestmark = pytest.mark.slow

_APPLY = ("apply", "-no-color", "-auto-approve")
_DESTROY = ("destroy", "-no-color", "-auto-approve")
_HEARD = 0.5  # seconds after which Terraform has passed on what it was told
_WARNING = "An earlier apply was killed while creating"

# It needs a second to end, and says so in its output.
_SLOW_TO_END = r"""
    #!/bin/bash
    mkdir -p results
    trap 'sleep 1.5; echo flushed > results/last.txt; exit 0' TERM
    echo ready | tee results/first.txt
    while true; do sleep 0.05; done
"""


def _with_upload(project: Project, folder: Callable[[Path], None] = long_upload) -> None:
    folder(project.folder / "work")
    project.write(task("#!/bin/sh\nmkdir results; ls > results/list; sleep 600", STORAGE))
    project.init()


def _slow_to_end(project: Project) -> None:
    (project.folder / "work").mkdir()
    project.write(task(_SLOW_TO_END, STORAGE))
    project.init()
    project.apply()
    until(lambda: project.stored("store/logs/0000/*/*"))  # its first line; before that, no trap


def _at_flush(project: Project, terraform: subprocess.Popen[str]) -> int:
    """The provider, while a destroy waits for the machine."""
    provider = held(terraform, lambda: _wanted(project) == "0")
    go_on(provider)
    return provider


def _wanted(project: Project) -> str:
    return "".join(path.read_text() for path in project.stored("scaler/wanted"))


def _is_home(project: Project) -> None:
    results = project.folder / "work" / "results"
    assert (results / "first.txt").read_text() == "ready\n"
    assert (results / "last.txt").read_text() == "flushed\n"


class TestControlC:
    def test_while_the_provider_starts_looks_like_nothing_else(self, project: Project) -> None:
        project.write(task())
        project.init()
        for delay in (0.1, 0.2, 0.3):
            terraform = project.start("plan", "-no-color")
            time.sleep(delay)
            ctrl_c(terraform)
            assert "Unrecognized remote plugin message" not in project.finish(terraform).said

    def test_during_an_upload_removes_what_was_made(self, project: Project) -> None:
        _with_upload(project, endless_upload)
        apply = project.start(*_APPLY)
        provider = held_at_upload(project, apply)
        ctrl_c(apply)
        time.sleep(_HEARD)
        go_on(provider)
        ended = project.finish(apply)
        assert ended.code == 1
        assert "Cancelled; nothing was left behind" in ended.said
        assert project.known() == {}
        assert project.tasks() == []
        end_the_upload(project.folder / "work")
        project.apply()
        assert list(project.known()) == project.tasks()
        project.destroy()

    def test_during_a_destroy_keeps_the_task_until_it_is_repeated(self, project: Project) -> None:
        _slow_to_end(project)
        destroy = project.start(*_DESTROY)
        _at_flush(project, destroy)
        ctrl_c(destroy)
        ended = project.finish(destroy)
        assert ended.code == 1
        assert "Some resources remain. Run `terraform destroy` again" in ended.said
        assert list(project.known()) == project.tasks() != []
        project.destroy()
        _is_home(project)

    @pytest.mark.parametrize("pause", [0.0, 0.3], ids=["at once", "after a moment"])
    def test_twice_during_a_creation(self, project: Project, pause: float) -> None:
        _with_upload(project, endless_upload)
        apply = project.start(*_APPLY)
        provider = held_at_upload(project, apply)
        ctrl_c(apply)
        time.sleep(_HEARD)
        ctrl_c(apply)
        time.sleep(pause)
        go_on(provider)
        assert project.finish(apply).code == 1
        provider_ends(project)
        end_the_upload(project.folder / "work")
        project.apply()
        assert list(project.known()) == project.tasks()
        project.destroy()

    def test_twice_during_a_destroy(self, project: Project) -> None:
        _slow_to_end(project)
        destroy = project.start(*_DESTROY)
        _at_flush(project, destroy)
        ctrl_c(destroy)
        ctrl_c(destroy)
        assert project.finish(destroy).code == 1
        provider_ends(project)
        project.destroy()
        _is_home(project)


class TestTerminated:
    def test_terraform_by_sigterm_removes_what_was_made(self, project: Project) -> None:
        _with_upload(project, endless_upload)
        apply = project.start(*_APPLY)
        provider = held_at_upload(project, apply)
        apply.terminate()
        time.sleep(_HEARD)
        go_on(provider)
        assert project.finish(apply).code != 0
        provider_ends(project)
        assert project.tasks() == []
        end_the_upload(project.folder / "work")
        project.apply()
        project.destroy()

    def test_the_provider_by_sigterm_answers_before_it_ends(self, project: Project) -> None:
        _with_upload(project, endless_upload)
        apply = project.start(*_APPLY)
        provider = held_at_upload(project, apply)
        os.kill(provider, signal.SIGTERM)
        go_on(provider)
        ended = project.finish(apply)
        assert ended.code == 1
        assert "Cancelled; nothing was left behind" in ended.said
        assert project.tasks() == []


class TestProviderKilled:
    """By SIGKILL, as the system does when memory is short."""

    def test_before_anything_is_made(self, project: Project) -> None:
        project.write(task())
        project.init()
        apply = project.start(*_APPLY)
        kill(held(apply, lambda: list(project.state_home.rglob("tpi-*.json"))))
        assert project.finish(apply).code == 1
        assert project.known() == {}
        left = project.tasks()  # the first folder, if it was too fast for us
        again = project.apply()
        assert (_WARNING in again.said) == bool(left)
        [made] = project.tasks()
        assert left in ([], [made])
        assert list(project.known()) == [made]
        project.destroy()

    @pytest.mark.parametrize("moment", [held_at_upload, held_at_start], ids=["upload", "start"])
    def test_while_it_creates_a_repeat_goes_on_with_the_same_task(
        self, project: Project, moment: Callable[[Project, subprocess.Popen[str]], int]
    ) -> None:
        _with_upload(project)
        for _ in range(5):
            apply = project.start(*_APPLY)
            kill(moment(project, apply))
            ended = project.finish(apply)
            if ended.code:
                break
            project.destroy()  # the answer was faster than we were
        assert ended.code == 1
        assert "Error" in ended.said
        [left] = project.tasks()
        assert project.known() == {}

        planned = project.plan(code=2)
        assert f"{_WARNING} {left}" in planned.said
        assert f"`sojourn delete {left}` to delete it" in planned.said
        again = project.apply()
        assert f"{_WARNING} {left}" in again.said
        assert list(project.known()) == project.tasks() == [left]
        assert _WARNING not in project.destroy().said

    def test_and_what_is_left_deleted_by_hand_is_told_of_no_more(self, project: Project) -> None:
        _with_upload(project)
        apply = project.start(*_APPLY)
        kill(held_at_upload(project, apply))
        project.finish(apply)
        [left] = project.tasks()
        project.sojourn("delete", left)
        again = project.apply()
        assert _WARNING not in again.said
        assert list(project.known()) == project.tasks() != [left]
        project.destroy()

    def test_and_a_namesake_that_is_refused_leaves_the_note_on_it(self, project: Project) -> None:
        other = _namesake(project, "#!/bin/sh\nsleep 500")
        apply = project.start(*_APPLY)
        kill(held_at_upload(project, apply))
        project.finish(apply)
        [left] = project.tasks()
        refused = other.apply(code=1)
        assert "a different task with this name already exists" in refused.said
        assert f"{_WARNING} {left}" in other.plan(code=2).said
        project.apply()
        assert list(project.known()) == project.tasks() == [left]
        project.destroy()

    def test_and_another_workspace_does_not_take_over_what_was_made(self, project: Project) -> None:
        slow = ("depends_on = [iterative_task.quick]", STORAGE)
        _with_upload(project)
        project.write(task(name="quick") + task(SLEEPS, *slow, name="slow"))
        apply = project.start(*_APPLY)
        kill(held_at_upload(project, apply))
        project.finish(apply)
        [known] = project.known()
        project.run("workspace", "new", "other")
        project.apply("-target=iterative_task.quick")
        assert project.task("iterative_task.quick")["id"] != known
        project.destroy()
        assert known in project.tasks()
        project.run("workspace", "select", "default")
        project.apply()
        assert sorted(project.known()) == project.tasks()
        assert known in project.known()
        project.destroy()

    def test_while_it_destroys(self, project: Project) -> None:
        _slow_to_end(project)
        destroy = project.start(*_DESTROY)
        kill(_at_flush(project, destroy))
        assert project.finish(destroy).code == 1
        assert list(project.known()) == project.tasks() != []
        project.destroy()
        _is_home(project)


class TestTerraformKilled:
    """By SIGKILL: the provider has to notice by itself."""

    def test_during_an_upload_the_provider_removes_what_was_made(self, project: Project) -> None:
        _with_upload(project, endless_upload)
        apply = project.start(*_APPLY)
        provider = held_at_upload(project, apply)
        kill(apply.pid)
        project.finish(apply)
        go_on(provider)
        provider_ends(project)
        assert project.tasks() == []
        end_the_upload(project.folder / "work")
        again = project.apply()
        assert _WARNING not in again.said
        assert list(project.known()) == project.tasks()
        project.destroy()

    def test_just_before_the_answer_a_repeat_goes_on_with_the_same_task(
        self, project: Project
    ) -> None:
        _with_upload(project)
        apply = project.start(*_APPLY)
        go_on(held_at_upload(project, apply))
        os.kill(apply.pid, signal.SIGSTOP)  # so that it cannot take the answer in
        until(lambda: list(project.state_home.rglob("tpi-*.made")))
        kill(apply.pid)
        project.finish(apply)
        provider_ends(project)
        [left] = project.tasks()
        assert project.known() == {}
        again = project.apply()
        assert f"{_WARNING} {left}" in again.said
        assert "Ignore this if the task is in the state" in again.said
        assert list(project.known()) == project.tasks() == [left]
        project.destroy()

    def test_just_after_the_answer_nothing_is_made_twice(self, project: Project) -> None:
        project.write(task())
        project.init()
        for _ in range(20):  # on a busy machine the moment may be over before it is noticed
            apply = project.start(*_APPLY)
            provider = caught(apply, lambda: "tpi-" in _text(project, "terraform.tfstate"))
            if provider is not None:
                break
            assert project.finish(apply).code == 0
            project.destroy()
        assert provider is not None
        kill(apply.pid)
        project.finish(apply)
        go_on(provider)
        provider_ends(project)
        assert list(project.known()) == project.tasks()
        project.plan(code=0)
        assert _WARNING not in project.plan(code=0).said
        project.destroy()

    def test_during_a_destroy_the_provider_ends_by_itself(self, project: Project) -> None:
        _slow_to_end(project)
        destroy = project.start(*_DESTROY)
        _at_flush(project, destroy)
        kill(destroy.pid)
        project.finish(destroy)
        provider_ends(project)
        project.destroy()
        _is_home(project)


class TestMany:
    def test_one_of_five_fails_and_the_others_are_known(self, project: Project) -> None:
        for number in range(5):
            (project.folder / f"work{number}").mkdir()
        project.write(
            """
resource "iterative_task" "example" {
  count  = 5
  cloud  = "local"
  script = "#!/bin/sh\\nsleep 600"
  storage { workdir = "work${count.index}" }
}
"""
        )
        project.init()
        project.run("plan", "-no-color", "-out=plan")
        (project.folder / "work3").rmdir()
        ended = project.run("apply", "-no-color", "plan", code=1)
        assert "not found; create it first" in ended.said
        assert sorted(project.known()) == project.tasks()
        assert len(project.tasks()) == 4
        project.destroy()

    def test_five_alike_are_five(self, project: Project) -> None:
        project.write(task(SLEEPS, "count = 5"))
        project.init()
        project.apply()
        assert sorted(project.known()) == project.tasks()
        assert len(project.tasks()) == 5
        project.destroy()


class TestTwoAtOnce:
    def test_in_one_folder_the_second_is_refused(self, project: Project) -> None:
        _with_upload(project)
        first = project.start(*_APPLY)
        provider = held_at_upload(project, first)
        refused = project.apply(code=1)
        assert "Error acquiring the state lock" in refused.said
        go_on(provider)
        assert project.finish(first).code == 0
        assert list(project.known()) == project.tasks()
        project.destroy()

    def test_of_the_same_task_by_name_there_is_one(self, project: Project) -> None:
        other = _namesake(project)
        first = project.start(*_APPLY)
        provider = held_at_upload(project, first)
        second = other.start(*_APPLY, **_LOGGED)
        until(lambda: _WAITING in _text(other, "log"))
        go_on(provider)
        assert project.finish(first).code == 0
        joined = other.finish(second)
        assert joined.code == 0
        assert "already exists and is adopted if it is the same task" in joined.said
        assert list(project.known()) == list(other.known()) == project.tasks()
        project.destroy()
        assert project.tasks() == []
        other.destroy()

    def test_a_resource_of_a_name_in_place_of_another(self, project: Project) -> None:
        """Terraform creates the one and destroys the other at the same time."""
        project.write(task(SLEEPS, 'name = "shared"', name="a"))
        project.init()
        project.apply()
        for label in "baba":
            project.write(task(SLEEPS, 'name = "shared"', name=label))
            project.apply()
            assert list(project.known()) == project.tasks() != []
        project.write(task(SLEEPS, 'name = "shared"', _FIRST, name="a"))
        project.apply()
        project.apply("-replace=iterative_task.a")
        assert list(project.known()) == project.tasks() != []
        project.destroy()

    def test_one_that_waits_for_another_hears_control_c(self, project: Project) -> None:
        other = _namesake(project)
        first = project.start(*_APPLY)
        provider = held_at_upload(project, first)
        second = other.start(*_APPLY, **_LOGGED)
        until(lambda: _WAITING in _text(other, "log"))
        ctrl_c(second)
        assert other.finish(second).code == 1
        go_on(provider)
        assert project.finish(first).code == 0
        assert other.known() == {}
        assert list(project.known()) == project.tasks()
        project.destroy()

    def test_of_another_task_by_the_same_name_the_second_is_refused(self, project: Project) -> None:
        other = _namesake(project, "#!/bin/sh\nsleep 500")
        first = project.start(*_APPLY)
        provider = held_at_upload(project, first)
        second = other.start(*_APPLY, **_LOGGED)
        until(lambda: _WAITING in _text(other, "log"))
        go_on(provider)
        assert project.finish(first).code == 0
        refused = other.finish(second)
        assert refused.code == 1
        assert "a different task with this name already exists" in refused.said
        assert "choose another name" in refused.said
        assert other.known() == {}
        assert list(project.known()) == project.tasks()
        project.plan(code=0)
        project.destroy()


_FIRST = "lifecycle { create_before_destroy = true }"
_LOGGED = {"TF_LOG_PROVIDER": "INFO", "TF_LOG_PATH": "log"}
_WAITING = "Waiting for another apply"


def _namesake(project: Project, script: str = SLEEPS) -> Project:
    """Another folder with a task of the same name and the same workdir, with this script."""
    work = project.folder.with_name("work")
    long_upload(work)
    other = project.beside("other")
    more = ('name = "shared"', f'storage {{ workdir = "{work}" }}')
    project.write(task(SLEEPS, *more))
    other.write(task(script, *more))
    for one in (project, other):
        one.init()
    return other


def _text(project: Project, name: str) -> str:
    path = project.folder / name
    return path.read_text() if path.exists() else ""
