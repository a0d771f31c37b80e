"""Stores and disks that fail for a while, or for good."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sojourn.agent.config import GONE, RANK_ENDED, TROUBLE
from sojourn.agent.telling import Telling
from sojourn.core.activity import Activity, Doing
from sojourn.core.clock import utc_now
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, QuotaError
from sojourn.core.report import Outcome, Report
from sojourn.core.status import State, task_status
from sojourn.core.task import Storage
from sojourn.storage import layout
from sojourn.storage.manifest import decode
from sojourn.storage.ranks import snapshots_of_rank
from tests.support.disks import small_disk
from tests.support.privileges import stopped_by_modes
from tests.support.waiting import until
from tests.unit.agent.world import World


@contextmanager
def _away(world: World) -> Iterator[None]:
    """The store cannot be reached."""
    hidden = world.folder / "hidden"
    world.store_folder.rename(hidden)
    world.store_folder.write_text("no folder")
    try:
        yield
    finally:
        world.store_folder.unlink()
        hidden.rename(world.store_folder)


def test_a_store_out_of_reach_does_not_disturb_the_script(world: World) -> None:
    world.task("for i in $(seq 30); do echo $i; echo $i >> file; sleep 0.1; done")
    world.follow()
    agent = world.agent(ttl=4.0, snapshot_every=0.2)
    until(lambda: "3\n" in world.printed())
    with _away(world):
        time.sleep(2)
        said = agent.said
    assert agent.wait() == 0
    expected = "".join(f"{number}\n" for number in range(1, 31))
    assert world.printed() == expected
    assert world.files()["file"].decode() == expected
    (report,) = world.reports()
    assert report.outcome is Outcome.SUCCEEDED
    assert "in the store" in said
    assert len(said.splitlines()) < 40, "it asked again and again"


def test_a_store_out_of_reach_at_the_end(world: World) -> None:
    # More output than the log keeps in memory, so that the rest waits in the pipe.
    world.task("echo started; sleep 1; seq -w 1500000; touch file")
    world.follow()
    agent = world.agent()
    until(lambda: "started" in world.printed())
    with _away(world):
        time.sleep(3)
    assert agent.wait() == 0
    lines = world.raw()
    assert len(lines) == 1_500_001
    assert lines[-1] == b"1500000"
    assert "file" in world.files()


def test_results_wait_for_a_store_that_is_out_of_reach(world: World) -> None:
    world.task("echo started; sleep 0.5; echo last; touch file")
    world.follow()
    agent = world.agent()
    until(lambda: "started" in world.printed())
    with _away(world):
        time.sleep(2.5)
    assert agent.wait() == 0
    assert world.printed() == "started\nlast\n"
    assert "file" in world.files()


def test_a_store_out_of_reach_at_the_beginning(world: World) -> None:
    world.task("true")
    with _away(world):
        agent = world.agent()
        assert agent.wait() == 70
    assert "Store not found" in agent.said


def test_a_task_that_was_deleted_needs_no_machine(world: World) -> None:
    world.task("true")
    world.store.delete([layout.TASK])
    _impatient(world)
    agent = world.agent()
    assert agent.wait() == RANK_ENDED
    assert "the task was deleted" in agent.said


def test_a_task_that_the_store_does_not_know_yet(world: World) -> None:
    world.task("echo here")
    written = bytes(world.store.get(layout.TASK))
    world.store.delete([layout.TASK])
    agent = world.agent()
    until(lambda: agent.said.count("task.json not found in the store") > 1)
    world.store.put(layout.TASK, written)
    assert agent.wait() == RANK_ENDED
    assert world.printed() == "here\n"


def test_a_notice_while_the_task_is_looked_for(world: World) -> None:
    agent = world.agent()
    until(lambda: "task.json not found in the store" in agent.said)
    agent.notice()
    assert agent.wait() == GONE


def test_an_error_is_told_on_one_line(world: World) -> None:
    """The last one is what `status` shows of a machine that was lost."""
    world.task("true")
    (world.store_folder / layout.TASK).write_bytes(b"")
    agent = world.agent()
    assert agent.wait() == TROUBLE
    (line,) = agent.said.splitlines()
    assert line.startswith("sojourn agent: task.json in the store is damaged: ")
    assert "Run `sojourn delete --force ID` to remove the task ID" in line


@pytest.mark.parametrize("missing", [False, True])
def test_a_damaged_workdir_is_told_and_not_tried_again(world: World, missing: bool) -> None:
    world.task("true", {"a": "content"})
    (found,) = world.store.list("workdir/objects")
    path = world.store_folder / found.path
    if missing:
        path.unlink()
    else:
        path.write_bytes(b"x" * found.size)
    assert world.agent().wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("could not prepare the machine: ")


def _two_snapshots(world: World) -> tuple[str, str]:
    """A first attempt that left two: the file holds `two` in the newest, `one` in the other."""
    world.task(
        """
        test $SOJOURN_ATTEMPT = 1 || { cat file; exit; }
        trap 'echo two > file; exit' TERM
        echo one > file
        while true; do sleep 0.05; done 2> /dev/null
        """
    )
    agent = world.agent()
    until(lambda: snapshots_of_rank(world.store, 0) and world.files().get("file") == b"one\n")
    agent.notice()
    assert agent.wait() == GONE
    newest, before = snapshots_of_rank(world.store, 0)
    return newest, before


def _objects(world: World, snapshot: str) -> set[str]:
    return set(decode(world.store.get(snapshot)).objects)


@pytest.mark.parametrize("missing", ["nothing", "objects", "damaged objects", "manifest"])
def test_a_snapshot_that_cannot_be_restored_gives_way_to_the_one_before(
    world: World, missing: str
) -> None:
    newest, before = _two_snapshots(world)
    own = _objects(world, newest) - _objects(world, before)
    assert own
    if missing == "objects":
        world.store.delete(sorted(own))
    elif missing == "damaged objects":
        for path in own:
            (world.store_folder / path).write_bytes(b"owt\n")
    elif missing == "manifest":
        (world.store_folder / newest).write_bytes(b"")
    again = world.agent("m2")
    assert again.wait() == 0
    assert world.printed() == ("two\n" if missing == "nothing" else "one\n")
    assert [report.outcome for report in world.reports()] == [Outcome.PREEMPTED, Outcome.SUCCEEDED]
    assert (f"could not restore {newest}: " in again.said) == (missing != "nothing")


@pytest.mark.parametrize("missing", ["objects", "manifests"])
def test_a_rank_none_of_whose_snapshots_can_be_restored_has_failed(
    world: World, missing: str
) -> None:
    both = _two_snapshots(world)
    if missing == "objects":
        world.store.delete(sorted({path for each in both for path in _objects(world, each)}))
    else:
        for path in both:
            (world.store_folder / path).write_bytes(b"")
    assert world.agent("m2").wait() == 0, "else another machine would try it, again and again"
    report = world.reports()[-1]
    assert (report.attempt, report.outcome) == (2, Outcome.FAILED)
    assert report.reason.startswith("could not prepare the machine: ")
    assert "\n" not in report.reason


@pytest.mark.parametrize(("script", "reason"), [("", ""), ("exit 3", "exit code 3; ")])
def test_files_that_could_not_be_stored_are_told_of(world: World, script: str, reason: str) -> None:
    world.task(f"echo ok > ok; echo lost > model; chmod 000 model\n{script}")
    assert world.agent(prefix=stopped_by_modes()).wait() == 0
    (report,) = world.reports()
    assert f"{reason}could not store model: " in report.reason
    assert "Permission denied" in report.reason
    assert world.files() == {"ok": b"ok\n"}


@pytest.mark.parametrize(
    ("output", "lost"), [("", 0), ("other", 0), ("results", 2), (".", 3), ("results/b/deeper", 1)]
)
def test_what_is_missing_from_the_output_is_counted(world: World, output: str, lost: int) -> None:
    script = "mkdir -p results/b results2; echo | tee results{,2}/a; chmod 0 */a results/b"
    world.task(script, storage=Storage(output=output))
    assert world.agent(prefix=stopped_by_modes()).wait() == 0
    (report,) = world.reports()
    assert (report.outcome, report.lost) == (Outcome.SUCCEEDED, lost)
    assert "could not store 3 files, including " in report.reason
    kept = world.folder / "m1/unstored/results/a"
    assert kept.exists() == bool(lost)


def test_files_that_could_be_stored_in_the_end_are_not_told_of(world: World) -> None:
    world.task("echo late > model; chmod 000 model; sleep 2; chmod 600 model")
    agent = world.agent(prefix=stopped_by_modes())
    assert agent.wait() == 0
    assert "not storing model: " in agent.said
    (report,) = world.reports()
    assert (report.outcome, report.reason) == (Outcome.SUCCEEDED, "")
    assert world.files() == {"model": b"late\n"}


def test_a_workdir_that_a_dead_agent_left_read_only_is_no_obstacle(world: World) -> None:
    world.task("cat file; ls -A", {"file": "fresh\n"})
    workdir = world.folder / "m1" / "workdir"
    (workdir / "old/deep").mkdir(parents=True)
    (workdir / "old/deep/file").write_text("old")
    for folder in (workdir / "old/deep", workdir / "old", workdir):
        folder.chmod(0o555)
    assert world.agent(prefix=stopped_by_modes()).wait() == 0
    assert world.printed() == "fresh\nfile\n"


def test_a_machine_without_a_disk(world: World) -> None:
    world.task("true")
    (world.folder / "file").touch()
    assert world.agent(folder=world.folder / "file").wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("could not prepare the machine: ")
    assert "Not a directory" in report.reason


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_machine_whose_disk_is_too_small(world: World, tiny_disk: Path) -> None:
    world.task("true", {"large": os.urandom(8 << 20)})
    assert world.agent(folder=tiny_disk / "machine").wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("could not prepare the machine: ")
    assert "o space" in report.reason
    assert "\n" not in report.reason, "it stands in tables"


def test_a_script_that_fills_the_disk(world: World, tiny_disk: Path) -> None:
    world.task("echo some > some; head -c 8000000 /dev/zero > large; echo $?; rm large")
    assert world.agent(folder=tiny_disk / "machine").wait() == 0
    assert "No space left" in world.printed()
    assert world.files() == {"some": b"some\n"}


_IMPATIENT = """
import sojourn.agent.attempt as attempt, sojourn.agent.work as work
attempt._KEPT_TRYING = work._GONE_AFTER = {}
"""


def _impatient(world: World, seconds: float = 2.0) -> None:
    """Have agents give up soon; Python loads this when it starts."""
    folder = world.folder / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_IMPATIENT.format(seconds))
    world.environment["PYTHONPATH"] = f"{folder}{os.pathsep}{world.environment['PYTHONPATH']}"


@pytest.mark.parametrize(
    ("end", "reason", "code"),
    [("", "", None), ("exit 3", "the script ended with exit code 3; ", 3)],
)
def test_results_that_the_store_has_no_room_for(
    world: World, end: str, reason: str, code: int | None
) -> None:
    _impatient(world)
    with small_disk(world.store_folder, "20m"):
        world.task(f"echo told; head -c 30000000 /dev/urandom > model\n{end}")
        assert world.agent().wait() == 0, "else another machine would run the script again"
        (report,) = world.reports()
        assert world.printed() == "told\n"
        assert world.store.list("ranks") == [], "it takes room, and nobody needs it"
    assert (report.outcome, report.exit_code, report.lost) == (Outcome.FAILED, code, -1)
    assert report.reason == (f"{reason}could not store the results: no space left in the store")
    assert (world.folder / "m1/unstored/model").stat().st_size == 30000000


def test_a_log_that_the_store_has_no_room_for(world: World) -> None:
    _impatient(world)
    with small_disk(world.store_folder, "1m"):
        world.task("echo first; sleep 1; seq -w 200000")
        world.follow()
        assert world.agent().wait() == 0
        (report,) = world.reports()
        printed = world.printed()
    assert printed.startswith("first\n")
    assert "200000" not in printed
    assert (report.outcome, report.exit_code, report.lost) == (Outcome.SUCCEEDED, 0, 0)
    assert report.reason == ("could not store the end of the log: no space left in the store")


def test_a_machine_that_has_to_go_while_the_store_is_full_is_replaced(world: World) -> None:
    _impatient(world)
    with small_disk(world.store_folder, "20m"):
        world.task("head -c 30000000 /dev/urandom > model; echo made; sleep 300")
        world.follow()
        agent = world.agent()
        until(lambda: "made" in world.printed())
        agent.notice()
        assert agent.wait() == TROUBLE
        assert world.reports() == []


def _lost(world: World, attempt: int) -> None:
    world.store.put(layout.attempt_path(0, attempt), b'{"machine": "gone"}')
    report = Report(0, attempt, Outcome.LOST, "the machine was lost", ended=utc_now())
    world.store.put(layout.report_path(0, attempt), json.dumps(report.to_dict()).encode())


def test_a_rank_that_takes_every_machine_down_has_failed(world: World) -> None:
    world.task("echo here > file")
    for attempt in range(1, 11):
        _lost(world, attempt)
    world.agent().wait()
    last = world.reports()[-1]
    assert (last.attempt, last.outcome) == (11, Outcome.FAILED)
    assert "lost 10 times in a row" in last.reason
    assert world.lines() == []


@pytest.mark.parametrize("progress", ["a snapshot", "a notice"])
def test_a_rank_that_came_further_on_machines_that_were_lost_goes_on(
    world: World, progress: str
) -> None:
    world.task("touch file; test $SOJOURN_ATTEMPT = 12 || sleep 300")
    for attempt in range(1, 5):
        _lost(world, attempt)
    agent = world.agent("m5")
    until(lambda: snapshots_of_rank(world.store, 0))
    agent.notice()
    agent.wait()
    if progress == "a snapshot":
        _lost(world, 5)
    else:
        world.store.delete(snapshots_of_rank(world.store, 0))
    for attempt in range(6, 12):
        _lost(world, attempt)
    world.agent("m12").wait()
    assert world.reports()[-1].outcome is Outcome.SUCCEEDED


def _doing(world: World) -> Doing | None:
    (record,) = world.data.records(Context(), 1)
    return record.activity.doing if record.activity else None


def test_a_full_store_is_told_and_the_log_is_whole_once_there_is_room(world: World) -> None:
    with small_disk(world.store_folder, "20m") as disk:
        wait = "until [ -e {} ]; do sleep 0.1; done; rm {}"
        first, last = wait.format("go", "go"), wait.format("end", "end")
        world.task(f"echo up; {first}; seq 300000; {last}; echo done")
        world.follow()
        agent = world.agent(ttl=2.0)
        until(lambda: "up" in world.printed())
        filling = _fill(disk)
        (world.folder / "m1" / "workdir" / "go").touch()
        until(lambda: _doing(world) is Doing.LOG_FULL)
        before = world.store.head(layout.attempt_path(0, 1))
        until(lambda: world.store.head(layout.attempt_path(0, 1)) != before)  # it is renewed
        assert agent.process.poll() is None
        filling.unlink()
        (world.folder / "m1" / "workdir" / "end").touch()
        assert agent.wait() == RANK_ENDED
        printed = world.raw()
        (report,) = world.reports()
    assert report.outcome is Outcome.SUCCEEDED
    assert printed == [b"up", *(b"%d" % n for n in range(1, 300001)), b"done"]
    assert len(agent.said.splitlines()) < 10, "it complained again and again"


def _fill(disk: Path) -> Path:
    filling = disk / "filling"
    with suppress(OSError), open(filling, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filling


def test_a_script_that_ends_while_the_store_is_full_is_not_said_to_run(world: World) -> None:
    with small_disk(world.store_folder, "20m") as disk:
        world.task(
            "echo up; until [ -e go ]; do sleep 0.1; done; "
            "head -c 3000000 /dev/urandom > model; exit 3"
        )
        world.follow()
        agent = world.agent(ttl=2.0)
        until(lambda: "up" in world.printed())
        filling = _fill(disk)
        (world.folder / "m1" / "workdir" / "go").touch()
        until(lambda: _doing(world) is Doing.ENDED_FULL)
        now = task_status(world.data.records(Context(), 1), wanted=1, alive={"m1"})
        assert (now.state, now.exit_code) == (State.STORING, 3)
        assert now.reason.startswith(
            "the script has ended with exit code 3, but its results are not stored yet: no space"
        )
        assert agent.process.poll() is None
        filling.unlink()
        assert agent.wait() == RANK_ENDED
        (report,) = world.reports()
        assert (report.outcome, report.exit_code, report.lost) == (Outcome.FAILED, 3, 0)
        assert "model" in {file.path for file in world.data.changed(Context())}
        assert [record.activity for record in world.data.records(Context(), 1)] == [None]


@pytest.mark.parametrize(
    ("error", "while_it_runs", "after"),
    [
        (QuotaError("full"), Doing.FILES_FULL, Doing.ENDED_FULL),
        (AuthError("refused"), Doing.FILES_REFUSED, Doing.ENDED_REFUSED),
    ],
)
def test_what_the_lease_says_after_the_script(
    error: Exception, while_it_runs: Doing, after: Doing
) -> None:
    telling = Telling()
    telling.restoring = None
    telling.on_files(error)
    assert telling.activity == Activity(while_it_runs)
    telling.on_end(7)
    assert telling.activity == Activity(after, 7, 256)
    assert Activity.from_dict(Activity(after, 7, 256).to_dict()) == telling.activity
    telling.on_files(None)
    assert telling.activity is None
