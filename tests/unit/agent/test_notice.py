"""Machines that go away: with a notice, without their supervisor, or given up by others."""

from __future__ import annotations

import os
import signal

import pytest

from sojourn.core.report import Outcome, Report
from sojourn.storage import layout
from sojourn.storage.lease import Leases
from tests.support.processes import marked
from tests.support.waiting import until
from tests.unit.agent.world import World

_COUNTING = """
trap 'echo told >> file; exit 0' TERM
echo started
while :; do echo x >> ticks; sleep 0.05; done
"""


def _started(world: World) -> bool:
    return "started" in world.printed()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_notice_is_not_an_end(world: World, number: int) -> None:
    world.task(_COUNTING)
    world.follow()
    agent = world.agent()
    until(lambda: _started(world))
    agent.process.send_signal(number)
    assert agent.wait() == 75
    (report,) = world.reports()
    assert (report.outcome, report.exit_code) == (Outcome.PREEMPTED, None)
    assert report.reason == "the machine was interrupted"
    assert world.files()["file"] == b"told\n"


def test_a_script_that_does_not_listen_is_killed(world: World) -> None:
    world.task("trap 'echo told > file' TERM; echo started; while :; do sleep 0.05; done")
    world.follow()
    agent = world.agent(grace=0.5)
    until(lambda: _started(world))
    agent.notice()
    agent.notice()
    assert agent.wait() == 75
    (report,) = world.reports()
    assert report.outcome is Outcome.PREEMPTED
    assert world.files()["file"] == b"told\n"


def test_all_of_the_group_is_told(world: World) -> None:
    world.task(
        "(trap 'echo child > child; exit' TERM; echo started; while :; do sleep 0.05; done) &\n"
        "trap 'wait; echo parent > parent; exit' TERM; wait"
    )
    world.follow()
    agent = world.agent()
    until(lambda: _started(world))
    agent.notice()
    assert agent.wait() == 75
    assert world.files() == {"child": b"child\n", "parent": b"parent\n"}


def test_the_next_machine_goes_on(world: World) -> None:
    world.task("echo attempt $SOJOURN_ATTEMPT; [ -e half ] && exit; touch half; sleep 60")
    world.follow()
    agent = world.agent("m1")
    until(lambda: "attempt 1" in world.printed())
    agent.notice()
    assert agent.wait() == 75
    assert world.agent("m2").wait() == 0
    assert [(report.attempt, report.outcome) for report in world.reports()] == [
        (1, Outcome.PREEMPTED),
        (2, Outcome.SUCCEEDED),
    ]
    assert world.printed() == "attempt 1\nattempt 2\n"


def test_the_next_machine_goes_on_where_a_dead_one_was(world: World) -> None:
    world.task("[ -e half ] && exit; touch half; echo started; sleep 60")
    world.follow()
    first = world.agent("m1", snapshot_every=0.2)
    until(lambda: _started(world))
    until(lambda: "half" in world.files() if world.store.list("ranks") else False)
    first.process.kill()
    first.wait()
    assert world.agent("m2", dead=("m1",)).wait() == 0
    reports = world.reports()
    assert [(report.attempt, report.outcome, report.reason) for report in reports] == [
        (1, Outcome.LOST, "the machine was lost"),
        (2, Outcome.SUCCEEDED, ""),
    ]
    for pid in marked(world.mark):  # a real machine takes its processes along
        os.kill(pid, signal.SIGKILL)


def test_an_agent_that_is_started_again_on_its_machine(world: World) -> None:
    world.task("ls; [ $SOJOURN_ATTEMPT = 2 ] && exit; touch half-written; sleep 60", {"a": "b"})
    world.follow()
    first = world.agent("m1", snapshot_every=60)
    until(lambda: world.printed() == "a\n")
    first.process.kill()
    first.wait()
    for pid in marked(world.mark):
        os.kill(pid, signal.SIGKILL)
    (world.folder / "m1" / "workdir" / "junk").touch()
    assert world.agent("m1", dead=("m1",)).wait() == 0
    assert "junk" not in world.printed()
    assert world.reports()[-1].outcome is Outcome.SUCCEEDED


def test_a_machine_that_is_only_silent_is_given_time(world: World) -> None:
    world.task("true")
    assert world.store.put_new(layout.attempt_path(0, 1), b'{"machine": "silent"}')
    agent = world.agent(ttl=1.5)
    assert agent.wait() == 0
    reports = world.reports()
    assert [(report.attempt, report.outcome, report.reason) for report in reports] == [
        (1, Outcome.LOST, "the machine stopped responding"),
        (2, Outcome.SUCCEEDED, ""),
    ]


def test_a_notice_while_it_waits_for_a_rank(world: World) -> None:
    world.task("true")
    assert world.store.put_new(layout.attempt_path(0, 1), b'{"machine": "other"}')
    agent = world.agent()
    until(lambda: world.store.list("machines"))
    agent.notice()
    assert agent.wait() == 75
    assert world.reports() == []


def test_the_lifeline(world: World) -> None:
    world.task(_COUNTING)
    world.follow()
    agent = world.agent(lifeline=True)
    until(lambda: _started(world))
    agent.cut_lifeline()
    assert agent.wait() == 75
    (report,) = world.reports()
    assert report.outcome is Outcome.PREEMPTED
    assert report.reason == "the machine's supervisor exited"
    assert world.files()["file"] == b"told\n"


def test_a_machine_that_was_given_up_stores_nothing_more(world: World) -> None:
    world.task("echo started; trap 'echo told; touch told' TERM; while :; do sleep 0.05; done")
    world.follow()
    agent = world.agent(ttl=1.0, grace=20)
    until(lambda: _started(world))
    given_up = Report(0, 1, Outcome.LOST, "by hand")
    assert Leases(world.store, "other", 1, ttl=1).report(given_up)
    assert agent.wait() == 75
    assert world.reports() == [given_up]
    assert world.printed() == "started\n"
    snapshots = world.store.list("ranks")
    assert not snapshots or "told" not in world.files()


def test_a_machine_that_was_given_up_at_its_very_end_is_not_done(world: World) -> None:
    world.task("sleep 1")
    agent = world.agent()
    until(lambda: world.store.list(layout.ATTEMPTS))
    assert Leases(world.store, "other", 1, ttl=1).report(Report(0, 1, Outcome.LOST, "by hand"))
    assert agent.wait() == 75
