"""Scale sets of the simulated Azure that lose machines: evictions, restoring, and autoscale."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User, capacity, refused, states
from tests.support.waiting import until


@pytest.fixture
def group(az_user: User) -> str:
    return az_user.make_group()


def test_an_eviction_with_deletion_lowers_the_capacity_for_good(
    az: SimAzure, az_user: User, group: str
) -> None:
    made = az_user.make_set(group, 2, spot="Delete")["id"]
    az.interrupt(az_user.machines(made)[0]["id"], notice=False)
    assert capacity(az_user, made) == 1
    assert list(states(az_user, made)) == ["1"]


def test_an_eviction_with_deallocation_keeps_the_instance_until_it_is_started(
    az: SimAzure, az_user: User, group: str
) -> None:
    made = az_user.make_set(group, 1, spot="Deallocate")["id"]
    az.evict(az.instances()[0], notice=False)
    assert capacity(az_user, made) == 1
    assert states(az_user, made) == {"0": "PowerState/deallocated"}
    az_user.finish(az_user.call("POST", f"{made}/virtualMachines/0/start"))
    assert states(az_user, made) == {"0": "PowerState/running"}


def test_evicted_instances_are_restored_if_asked_for_and_there_is_room(
    az: SimAzure, az_user: User, group: str
) -> None:
    restore = {"spotRestorePolicy": {"enabled": True, "restoreTimeout": "PT1H"}}
    made = az_user.make_set(group, 1, spot="Delete", properties=restore)["id"]
    az.capacity(None, None, False)
    az.evict(az.instances()[0], notice=False)
    assert capacity(az_user, made) == 1
    assert states(az_user, made) == {}
    az.capacity(None, None, True)
    until(lambda: states(az_user, made) == {"1": "PowerState/running"})
    az.capacity(None, None, False)
    az.evict(az.instances()[1], notice=False)
    az.advance(3700)
    until(lambda: capacity(az_user, made) == 0)


def test_a_simulated_eviction_comes_after_its_notice(
    az: SimAzure, az_user: User, group: str
) -> None:
    az.timing.notice = 30
    made = az_user.make_set(group, 1, spot="Delete")["id"]
    answer = az_user.call("POST", f"{made}/virtualMachines/0/simulateEviction")
    assert answer.status_code == 204
    assert list(states(az_user, made)) == ["0"]
    az.advance(31)
    until(lambda: not states(az_user, made))


# Autoscale


def _setting(target: str, *profiles: dict[str, Any]) -> dict[str, Any]:
    properties = {"enabled": True, "targetResourceUri": target, "profiles": list(profiles)}
    return {"location": "eastus", "properties": properties}


def _profile(name: str, number: int, **more: Any) -> dict[str, Any]:
    limits = dict.fromkeys(("minimum", "default", "maximum"), str(number))
    return {"name": name, "capacity": limits, "rules": [], **more}


def test_autoscale_keeps_a_number_and_ends_it_at_a_time(
    az: SimAzure, az_user: User, group: str
) -> None:
    made = az_user.make_set(group, 2, spot="Delete")["id"]
    now = datetime.now(timezone.utc)
    until_then = {
        "timeZone": "UTC",
        "start": now.isoformat(),
        "end": (now + timedelta(hours=1)).isoformat(),
    }
    path = f"{group}/providers/Microsoft.Insights/autoscalesettings/keeper"
    body = _setting(made, _profile("running", 2, fixedDate=until_then), _profile("over", 0))
    az_user.put(path, body)
    az.evict(az.instances()[0], notice=False)
    until(lambda: list(states(az_user, made)) == ["1", "2"])
    az_user.finish(az_user.call("POST", f"{made}/delete", {"instanceIds": ["1"]}))
    until(lambda: list(states(az_user, made)) == ["2", "3"])
    az.advance(3700)
    until(lambda: not states(az_user, made))
    assert capacity(az_user, made) == 0


def test_autoscale_does_not_replace_what_could_not_be_made(
    az: SimAzure, az_user: User, group: str
) -> None:
    """A failed instance counts: somebody has to delete it, for there to be another attempt."""
    made = az_user.make_set(group, 1, spot="Delete")["id"]
    path = f"{group}/providers/Microsoft.Insights/autoscalesettings/keeper"
    az_user.put(path, _setting(made, _profile("all", 1)))
    az.capacity(None, None, False)
    az.evict(az.instances()[0], notice=False)
    failed = "ProvisioningState/failed/OverconstrainedAllocationRequest"
    until(lambda: states(az_user, made) == {"1": failed})
    az.capacity(None, None, True)
    az.advance(3600)
    assert states(az_user, made) == {"1": failed}
    az_user.finish(az_user.call("POST", f"{made}/delete", {"instanceIds": ["1"]}))
    until(lambda: states(az_user, made) == {"2": "PowerState/running"})


def test_settings_are_checked(az_user: User, group: str) -> None:
    made = az_user.make_set(group, 0)["id"]
    path = f"{group}/providers/Microsoft.Insights/autoscalesettings/keeper"
    wrong = _profile("a", 1)
    wrong["capacity"]["minimum"] = "2"
    refused("InvalidCapacity", az_user.call("PUT", path, _setting(made, wrong)))
    answer = az_user.call("PUT", path, _setting(f"{made}x", _profile("a", 1)))
    refused("TargetResourceNotFound", answer)
    az_user.put(path, _setting(made, _profile("a", 1)))
    second = az_user.call("PUT", f"{path}2", _setting(made, _profile("a", 1)))
    refused("Conflict", second)
    az_user.delete(path)
