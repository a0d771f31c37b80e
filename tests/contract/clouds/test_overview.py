"""What a list says of many tasks at a glance is what a closer look at each says."""

from __future__ import annotations

import pytest

from sojourn import api
from sojourn.core.status import State
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import WAITING, Lab, log_of
from tests.support.waiting import until


def test_the_list_agrees_with_a_closer_look(lab: Lab) -> None:
    handle = lab.create("exit $((SOJOURN_RANK * 3))", parallelism=2)
    handle.wait()
    [(_, seen)] = api.overview()
    near = handle.status()
    handle.delete()
    assert seen.state is near.state is State.FAILED
    assert (seen.exit_code, seen.reason) == (3, near.reason)
    assert [(r.state, r.exit_code) for r in seen.ranks] == [
        (State.SUCCEEDED, 0),
        (State.FAILED, 3),
    ]


def test_the_list_agrees_while_it_runs_and_when_it_is_stopped(lab: Lab) -> None:
    handle = lab.create(WAITING)
    until(lambda: "up" in log_of(handle))
    [(_, running)] = api.overview()
    handle.stop()
    [(_, stopped)] = api.overview()
    near = handle.status()
    handle.delete()
    assert running.state is State.RUNNING
    assert (stopped.state, stopped.reason) == (near.state, near.reason)
    assert near.state is State.STOPPED


@pytest.mark.slow
@pytest.mark.parametrize("kit", ["aws"], indirect=True)
def test_machines_tell_their_group_how_their_ranks_ended(lab: Lab) -> None:
    if not isinstance(lab.kit, AwsKit):
        pytest.skip("only a simulated account counts calls")
    handle = lab.create("true")
    handle.wait()
    calls = lab.kit.account.calls
    before = len(calls)
    [(_, seen)] = api.overview()
    names = [call.name for call in calls[before:] if ":user/" in call.who]
    handle.delete()
    assert seen.state is State.SUCCEEDED
    assert names == [
        "s3:ListBuckets",
        "iam:ListRoles",
        "autoscaling:DescribeAutoScalingGroups",
    ]
