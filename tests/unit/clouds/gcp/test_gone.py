"""What the group tells of a machine that holds a rank, and when that is enough."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from sojourn.clouds.gcp.on_machine import gone, metadata
from sojourn.clouds.gcp.on_machine.settings import Settings
from tests.unit.clouds.vm.told import PLACES

_SETTINGS = Settings(**PLACES, zone="z", group="https://x")


class _Told(gone.Gone):
    """Is told these states of the machine `1`, one after the other; its own number is `2`."""

    def __init__(self, *states: str) -> None:
        super().__init__(_SETTINGS)
        self._told: Iterator[str] = iter(states)

    def _states(self) -> dict[str, str]:
        state = next(self._told)
        if state == "nothing":
            return {}
        return {"1": state, "2": "RUNNING"} if state else {"2": "RUNNING"}

    def _own(self) -> str:
        return "2"


@pytest.fixture(autouse=True)
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "_ASK_EVERY", 0.0)


@pytest.mark.parametrize("ended", ["TERMINATED", "STOPPED", "SUSPENDED"])
def test_only_what_has_ended_is_gone(ended: str) -> None:
    told = _Told("RUNNING", "STOPPING", ended)
    assert ["1" in told for _ in range(4)] == [False, False, True, True]


def test_one_that_the_group_does_not_know_is_gone_after_a_while() -> None:
    """It may be new, and not known everywhere yet; one that is replaced has another number."""
    told = _Told("", "RUNNING", "", "")
    assert ["1" in told for _ in range(4)] == [False] * 3 + [True]


def test_an_answer_that_does_not_know_this_machine_tells_nothing() -> None:
    """It is from before both."""
    told = _Told("nothing", "nothing", "nothing", "", "")
    assert ["1" in told for _ in range(5)] == [False] * 4 + [True]


def test_the_group_is_not_asked_more_than_once_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "_ASK_EVERY", 60.0)
    told = _Told("RUNNING")
    assert ["1" in told for _ in range(5)] == [False] * 5


def _answering(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(metadata, "get", lambda _: "3")
    monkeypatch.setattr(metadata, "authorized", lambda *_: None)
    answer = lambda *_, **__: io.BytesIO(text.encode())  # noqa: E731
    monkeypatch.setattr(urllib.request, "urlopen", answer)


def test_the_states_are_read_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = [
        {"id": "1", "instanceStatus": "TERMINATED", "currentAction": "RECREATING"},
        {"currentAction": "CREATING"},  # it has no number yet
        {"id": "3"},
    ]
    _answering(monkeypatch, json.dumps({"managedInstances": found}))
    asked = gone.Gone(_SETTINGS)
    assert ("1" in asked, "3" in asked) == (True, False)


@pytest.mark.parametrize("text", ["<html>", "[]", '{"managedInstances": [1]}'])
def test_a_strange_answer_tells_nothing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    _answering(monkeypatch, text)
    with pytest.raises(OSError, match="strangely"):
        assert "1" in gone.Gone(_SETTINGS)
