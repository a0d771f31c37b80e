"""An agent's whole life: from taking a rank to reporting its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.core.report import Outcome
from sojourn.storage import layout
from tests.support.waiting import until
from tests.unit.agent.world import World, alive


def test_whole_life(world: World) -> None:
    world.task("cat data/in; cat data/in > out; echo done >&2; chmod 755 out", {"data/in": "hello"})
    agent = world.agent()
    assert agent.wait() == 0
    (report,) = world.reports()
    assert (report.rank, report.attempt, report.outcome, report.exit_code, report.reason) == (
        *(0, 1, Outcome.SUCCEEDED),
        *(0, ""),
    )
    assert "" < report.started < report.ended
    assert report.segments == len(world.store.list("logs"))
    assert world.printed() == "hellodone\n"
    assert world.files() == {"data/in": b"hello", "out": b"hello"}
    assert agent.said == ""


def test_nothing_to_bring_and_nothing_written(world: World) -> None:
    assert world.run("pwd; ls -A").outcome is Outcome.SUCCEEDED
    assert world.printed() == f"{world.folder}/m1/workdir\n"


def test_nothing_left_to_do(world: World) -> None:
    world.run("true")
    second = world.agent("m2")
    assert second.wait() == 0
    assert len(world.reports()) == 1
    assert not (world.folder / "m2").exists()


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("exit 3", 3, "the script ended with exit code 3"),
        ("kill -SEGV $$", 139, "the script was killed by SIGSEGV"),
        ("kill -9 $$", 137, "the script was killed by SIGKILL; the machine may have run out of"),
        ("exit 255", 255, "the script ended with exit code 255"),
    ],
)
def test_bad_ends(world: World, script: str, code: int, reason: str) -> None:
    report = world.run(f"echo kept > file; {script}")
    assert (report.outcome, report.exit_code) == (Outcome.FAILED, code)
    assert report.reason.startswith(reason)
    assert world.files() == {"file": b"kept\n"}


def test_timeout(world: World) -> None:
    world.task("trap 'echo ended; exit 7' TERM; sleep 60 & wait", timeout=1)
    assert world.agent().wait() == 0
    (report,) = world.reports()
    assert (report.outcome, report.exit_code) == (Outcome.TIMED_OUT, 7)
    assert report.reason == "exceeded the timeout of 1 seconds"
    assert world.printed() == "ended\n"


def test_timeout_of_a_script_that_does_not_listen(world: World) -> None:
    world.task("trap '' TERM; while :; do sleep 0.1; done", timeout=1)
    assert world.agent(grace=0.5).wait() == 0
    (report,) = world.reports()
    assert (report.outcome, report.exit_code) == (Outcome.TIMED_OUT, 137)


def test_timeout_while_the_workdir_is_restored(world: World) -> None:
    files: dict[str, str | bytes] = {f"{number}": os.urandom(2 << 20) for number in range(60)}
    world.task("true", files, timeout=1)
    environment = dict(world.environment)
    # A second is over before an agent so slow has restored anything.
    world.environment["PYTHONPATH"] = f"{_slow(world.folder)}:{environment['PYTHONPATH']}"
    assert world.agent().wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.TIMED_OUT
    assert report.reason == "exceeded the timeout of 1 seconds"


def _slow(folder: Path) -> Path:
    hook = folder / "slow" / "sitecustomize.py"
    hook.parent.mkdir()
    hook.write_text(
        "import time, os\n"
        "link = os.open\n"
        "def slowly(path, *args, **more):\n"
        "    if 'workdir' in str(path): time.sleep(0.2)\n"
        "    return link(path, *args, **more)\n"
        "os.open = slowly\n"
    )
    return hook.parent


def test_daemons_end_with_the_script(world: World) -> None:
    report = world.run(
        """
        python3 - <<'EOF'
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        with open("daemon", "w") as file:
            file.write(str(os.getpid()))
        os.rename("daemon", "pid")
        time.sleep(300)
    os._exit(0)
EOF
        while [ ! -e pid ]; do sleep 0.05; done
        """
    )
    assert report.outcome is Outcome.SUCCEEDED
    daemon = int(world.files()["pid"])
    until(lambda: not alive(daemon), 5)


def test_a_daemon_that_holds_the_output_does_not_hold_the_end(world: World) -> None:
    report = world.run("setsid sleep 300 & echo started")
    assert report.outcome is Outcome.SUCCEEDED
    assert world.printed() == "started\n"


def test_orphans_are_reaped_while_the_script_runs(world: World) -> None:
    script = """
    for i in 1 2 3 4 5; do (setsid sh -c 'exit 0' &); done
    sleep 1
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null < $stat || continue
        set -- ${line##*)}
        if [ "$1" = Z ] && [ "$2" = $PPID ]; then echo zombie; fi
    done
    echo looked
    """
    world.run(script)
    assert world.printed() == "looked\n"


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("#!/no/such/shell\ntrue\n", 127, "/no/such/shell, from its first line, not found"),
        ("#!\ntrue\n", 126, "could not run the script: "),
        ("#!/etc/passwd\n", 126, "could not run the script: "),
    ],
)
def test_scripts_that_cannot_start(world: World, script: str, code: int, reason: str) -> None:
    world.task(script)
    assert world.agent().wait() == 0, "another machine could not start it either"
    (report,) = world.reports()
    assert (report.outcome, report.exit_code) == (Outcome.FAILED, code)
    assert reason in report.reason


def test_bytes_that_are_no_text(world: World) -> None:
    script = b"#!/bin/sh\nprintf '\xff\xc3\xa9'\n".decode("utf-8", "surrogateescape")
    assert world.run(script).outcome is Outcome.SUCCEEDED
    assert world.printed() == "\ufffdé"


def test_three_ranks(world: World) -> None:
    world.task('echo "$SOJOURN_RANK of $SOJOURN_PARALLELISM" > rank; sleep 0.5', parallelism=3)
    agents = [world.agent(f"m{number}") for number in range(3)]
    assert [agent.wait() for agent in agents] == [0, 0, 0]
    reports = world.reports()
    assert [(report.rank, report.attempt) for report in reports] == [(0, 1), (1, 1), (2, 1)]
    assert [world.files(rank)["rank"] for rank in range(3)] == [
        b"0 of 3\n",
        b"1 of 3\n",
        b"2 of 3\n",
    ]


def test_two_machines_race_for_one_rank(world: World) -> None:
    world.task("echo once; sleep 1.5")
    agents = [world.agent("m1"), world.agent("m2")]
    assert [agent.wait() for agent in agents] == [0, 0]
    assert len(world.reports()) == 1
    assert world.printed() == "once\n"
    assert len(world.store.list(layout.ATTEMPTS)) == 1
