"""Which machines count as gone: not one that Azure has not been asked about twice."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.az.on_machine import arm
from sojourn.clouds.az.on_machine.gone import Gone
from sojourn.clouds.az.on_machine.settings import Settings
from tests.unit.clouds.vm.told import PLACES

SETTINGS = Settings(
    **PLACES, identity="/one", ranks=1, set="/set", setting="", tags="", compute="2024-11-01"
)


class Azure:
    """Answers with the machines there are, on pages of one."""

    def __init__(self) -> None:
        self.machines: dict[str, str] = {}
        self.asked = 0

    def call(self, settings: Any, method: str, path: str) -> Any:
        names = sorted(self.machines)
        page = int(path.rpartition("=")[2]) if "skip" in path else 0
        self.asked += page == 0
        said: dict[str, Any] = {"value": [self._one(name) for name in names[page : page + 1]]}
        if page + 1 < len(names):
            said["nextLink"] = f"https://management.azure.com/set/virtualMachines?skip={page + 1}"
        return said

    def _one(self, name: str) -> Any:
        statuses = [{"code": "ProvisioningState/succeeded"}, {"code": self.machines[name]}]
        return {"properties": {"vmId": name, "instanceView": {"statuses": statuses}}}


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Azure:
    azure = Azure()
    monkeypatch.setattr(arm, "call", azure.call)
    monkeypatch.setattr("sojourn.clouds.az.on_machine.gone._ASK_EVERY", 0.0)
    return azure


def test_who_is_there_is_not_gone_until_it_is(azure: Azure) -> None:
    azure.machines = {"a": "PowerState/running", "b": "PowerState/running"}
    gone = Gone(SETTINGS)
    assert [("a" in gone, "b" in gone) for _ in range(3)] == [(False, False)] * 3
    del azure.machines["b"]
    assert "b" not in gone
    assert "b" in gone
    assert "a" not in gone
    before = azure.asked
    assert "b" in gone
    assert azure.asked == before  # for good


def test_one_that_nobody_ever_saw_is_asked_for_twice(azure: Azure) -> None:
    gone = Gone(SETTINGS)
    assert "new" not in gone
    assert "new" in gone


def test_one_that_is_switched_off_does_nothing_any_more(azure: Azure) -> None:
    azure.machines = {"a": "PowerState/stopped"}
    gone = Gone(SETTINGS)
    assert "a" not in gone
    assert "a" in gone


def test_azure_is_not_asked_all_the_time(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sojourn.clouds.az.on_machine.gone._ASK_EVERY", 60.0)
    azure.machines = {"a": "PowerState/running"}
    gone = Gone(SETTINGS)
    assert [each in gone for each in "abab"] == [False] * 4
    assert azure.asked == 1


def test_silence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: Any) -> Any:
        raise OSError("no route")

    monkeypatch.setattr(arm, "call", call)
    with pytest.raises(OSError, match="no route"):
        "a" in Gone(SETTINGS)  # noqa: B015
