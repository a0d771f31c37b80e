"""What Terraform is shown of a task, and how its results come home."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.privileges import stopped_by_modes
from tests.support.waiting import until
from tests.terraform.hcl import SLEEPS, STORAGE, task
from tests.terraform.project import Project

_WRITES = """
    #!/bin/bash
    mkdir -p results
    echo done | tee results/result.txt
"""


def _started(project: Project, script: str = SLEEPS, *more: str) -> None:
    project.write(task(script, *more))
    project.init()
    project.apply()


def _with_results(project: Project) -> None:
    (project.folder / "work").mkdir()
    _started(project, _WRITES, STORAGE)
    _ended(project)


def _ended(project: Project, ranks: int = 1) -> None:
    until(lambda: len(project.stored("store/reports/*/*")) == ranks, 60)


def _texts(log: str) -> list[str]:
    """The lines of a log without their times."""
    return [line.partition(" ")[2] for line in log.splitlines()]


class TestStates:
    def test_running_then_stopped(self, project: Project) -> None:
        _started(project)
        until(lambda: project.stored("store/attempts/*/*"))
        now = project.refreshed()
        assert (now["state"], now["reason"]) == ("running", "")
        assert now["status"] == {"running": 1, "succeeded": 0, "failed": 0}
        assert now["addresses"] == ["127.0.0.1"]
        project.sojourn("stop", now["id"])
        now = project.refreshed()
        assert (now["state"], now["reason"]) == ("stopped", "run `sojourn start` to resume it")
        assert now["status"] == {"running": 0, "succeeded": 0, "failed": 0}
        assert now["addresses"] == []
        project.plan(code=0)
        project.destroy()

    @pytest.mark.parametrize(
        ("script", "more", "state", "reason"),
        [
            ("#!/bin/sh\necho bad; exit 7", "", "failed", "exit code 7"),
            (SLEEPS, "timeout = 1", "timed-out", "timeout of 1"),
        ],
        ids=["failed", "timed-out"],
    )
    def test_ended_badly(
        self, project: Project, script: str, more: str, state: str, reason: str
    ) -> None:
        _started(project, script, more)
        _ended(project)
        now = project.refreshed()
        assert now["state"] == state
        assert reason in now["reason"]
        assert now["status"] == {"running": 0, "succeeded": 0, "failed": 1}
        project.plan(code=0)
        project.destroy()

    def test_recovering(self, project: Project) -> None:
        # Its machine takes itself away as soon as it has one, so that the next ones have to wait
        # longer and longer.
        _started(project, "#!/bin/sh\nkill -9 $PPID; sleep 600")
        until(lambda: len(project.stored("store/attempts/0000/*")) >= 3, 60)
        until(lambda: project.refreshed()["state"] == "recovering", 60)
        now = project.task()
        assert "waiting for a new machine" in now["reason"]
        assert [event.split()[1] for event in now["events"]][:2] == [
            "machine-started",
            "machine-lost",
        ]
        project.destroy()

    def test_three_at_once(self, project: Project) -> None:
        script = "#!/bin/sh\necho rank $SOJOURN_RANK\n"
        _started(project, script, "parallelism = 3")
        _ended(project, 3)
        now = project.refreshed()
        assert now["status"] == {"running": 0, "succeeded": 3, "failed": 0}
        assert list(map(_texts, now["logs"])) == [["rank 0"], ["rank 1"], ["rank 2"]]
        project.destroy()

    def test_gone(self, project: Project) -> None:
        _started(project)
        [first] = project.tasks()
        project.sojourn("delete", first)
        planned = project.plan(code=2)
        assert "1 to add, 0 to change, 0 to destroy" in planned.out
        project.apply()
        [second] = project.tasks()
        assert second != first
        project.sojourn("delete", second)
        project.destroy()

    def test_gone_between_refresh_and_destroy(self, project: Project) -> None:
        _started(project)
        project.sojourn("delete", *project.tasks())
        project.destroy("-refresh=false")
        assert project.known() == {}


class TestLogs:
    def test_of_a_long_one_the_state_keeps_the_end(self, project: Project) -> None:
        script = "#!/bin/bash\nyes 'a line of a log that is much too long' | head -c 22000000\n"
        _started(project, f"{script}echo; echo the end")
        _ended(project)
        now = project.refreshed()
        assert now["state"] == "succeeded"
        [log] = now["logs"]
        first, *_, last = log.splitlines()
        assert first == f"[truncated; run `sojourn logs {now['id']}` for the full log]"
        assert last.endswith(" the end")
        assert 7_000_000 < len(log) < 8_100_000
        project.destroy()


class TestResults:
    def test_come_home_before_anything_is_removed(self, project: Project) -> None:
        _with_results(project)
        work = project.folder / "work"
        shutil.rmtree(work)
        work.write_text("in the way")
        failed = project.destroy(code=1)
        assert f"{work}" in failed.said
        assert "sojourn delete --force" in failed.said
        assert "bug in Sojourn" not in failed.said
        assert list(project.known()) == project.tasks() != []
        assert project.stored("store/task.json")

        work.unlink()
        project.destroy()
        assert (work / "results" / "result.txt").read_text() == "done\n"

    def test_stay_if_the_folder_cannot_be_written(self, project: Project) -> None:
        prefix = stopped_by_modes()
        _with_results(project)
        work = project.folder / "work"
        work.chmod(0o555)
        failed = project.run("destroy", "-no-color", "-auto-approve", code=1, prefix=prefix)
        assert "Permission denied" in failed.said
        assert "sojourn delete --force" in failed.said
        assert "bug in Sojourn" not in failed.said
        assert list(project.known()) == project.tasks() != []

        work.chmod(0o755)
        project.destroy()
        assert (work / "results" / "result.txt").read_text() == "done\n"

    def test_come_to_where_the_project_is_now(self, project: Project) -> None:
        _with_results(project)
        before = project.folder
        project.folder = before.with_name("elsewhere")
        before.rename(project.folder)
        project.destroy()
        assert (project.folder / "work" / "results" / "result.txt").read_text() == "done\n"
        assert not before.exists()

    def test_come_to_a_folder_that_is_there_no_more(self, project: Project) -> None:
        _with_results(project)
        (project.folder / "work").rmdir()
        project.destroy()
        assert os.listdir(project.folder / "work" / "results") == ["result.txt"]

    def test_that_were_written_elsewhere_are_not_thrown_away(self, project: Project) -> None:
        (project.folder / "work").mkdir()
        _started(project, _WRITES, STORAGE.replace("results", "resluts"))
        _ended(project)
        refused = project.destroy(code=1)
        assert "succeeded but left nothing new in its output 'resluts'" in refused.said
        assert len(project.tasks()) == 1
        project.write(task(_WRITES, STORAGE))
        project.apply()
        project.destroy()
        assert (project.folder / "work/results/result.txt").read_text() == "done\n"


class TestTimeouts:
    def test_of_a_creation(self, project: Project) -> None:
        project.write(task(SLEEPS, 'timeouts { create = "1ms" }'))
        project.init()
        failed = project.apply(code=1)
        assert "Timed out" in failed.said
        assert "Everything created so far was removed" in failed.said
        assert project.known() == {}
        assert project.tasks() == []
        project.destroy()

    def test_of_a_destruction(self, project: Project) -> None:
        _started(project, SLEEPS, 'timeouts { delete = "1ms" }')
        failed = project.destroy(code=1)
        assert "Timed out" in failed.said
        assert list(project.known()) == project.tasks() != []
        project.write(task(SLEEPS, 'timeouts { delete = "1m" }'))
        project.apply()
        project.destroy()

    def test_that_is_none_is_refused(self, project: Project) -> None:
        project.write(task(SLEEPS, 'timeouts { create = "soon" }'))
        project.init()
        assert "invalid duration 'soon'" in project.validate(code=1).said


def test_nothing_is_refreshed_into_the_project(project: Project) -> None:
    """Looking at a task writes nothing but the state."""
    _with_results(project)
    before = sorted(map(str, Path(project.folder).rglob("*")))
    project.run("plan", "-no-color")
    assert sorted(map(str, Path(project.folder).rglob("*"))) == before
    project.destroy()
