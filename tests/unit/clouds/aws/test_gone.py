"""What EC2 tells of a machine that holds a rank, and when that is enough."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import IncompleteRead

import pytest

from sojourn.clouds.aws.on_machine import gone
from sojourn.clouds.aws.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.agent import Dead
from tests.unit.clouds.vm.told import PLACES

_SETTINGS = Settings(**PLACES, region="", bucket_region="", autoscaling="", ec2="", tag="", hook="")
_ANSWER = """<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
<reservationSet>{}</reservationSet></DescribeInstancesResponse>"""
_INSTANCE = "<item><instancesSet><item><instanceId>i-1</instanceId>"
_INSTANCE += "<instanceState><code>1</code><name>{}</name>"
_INSTANCE += "</instanceState></item></instancesSet></item>"


@pytest.mark.parametrize("state", ["running", "shutting-down", "terminated"])
def test_the_state_is_read(state: str) -> None:
    assert gone._states_in(_ANSWER.format(_INSTANCE.format(state)).encode()) == {"i-1": state}


def test_one_that_is_not_known_has_none() -> None:
    assert gone._states_in(_ANSWER.format("").encode()) == {}


def test_a_strange_answer_tells_nothing() -> None:
    with pytest.raises(OSError, match="strangely"):
        gone._states_in(b"<html></html>")


class _Told(gone.Gone):
    """Is told these states, one after the other, and may ask at any time."""

    def __init__(self, *states: str) -> None:
        super().__init__(
            Settings(**PLACES, region="", bucket_region="", autoscaling="", ec2="", tag="", hook="")
        )
        self._told: Iterator[str] = iter(states)

    def _states(self) -> dict[str, str]:
        state = next(self._told)
        return {"i-1": state, "i-2": "running"} if state else {"i-2": "running"}


@pytest.fixture(autouse=True)
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "_ASK_EVERY", 0.0)


def test_only_what_has_ended_is_gone() -> None:
    told = _Told("running", "shutting-down", "terminated")
    assert ["i-1" in told for _ in range(4)] == [False, False, True, True]


def test_one_that_is_not_known_is_gone_after_a_while() -> None:
    told = _Told("", "", "running", "", "", "")
    assert ["i-1" in told for _ in range(6)] == [False] * 5 + [True]


def test_all_machines_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting agent looks at every rank."""
    monkeypatch.setattr(gone, "_ASK_EVERY", 60.0)
    told = _Told("running")
    assert [each in told for each in ("i-1", "i-2", "i-3", "i-1")] == [False] * 4


@pytest.mark.parametrize("error", [OSError("denied"), IncompleteRead(b"")])
def test_a_cloud_that_does_not_answer_tells_of_none(error: Exception) -> None:
    class Silent:
        def __contains__(self, _: object) -> bool:
            raise error

    dead = Dead({"i-0"}, Silent())
    assert "i-0" in dead
    assert "i-1" not in dead
