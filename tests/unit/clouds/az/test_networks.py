"""Networks that users choose, and who may connect to machines there."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User
from tests.unit.clouds.vm import doors


def _task(**options: str) -> Task:
    return Task("#!/bin/sh\n", cloud="az", options=options)


def _found(user: User, handle: sojourn.Handle, kind: str) -> Any:
    return user.get(f"resourceGroups/{handle.id}/providers/{kind}/{handle.id}")


def _card(user: User, handle: sojourn.Handle) -> Any:
    scale_set = _found(user, handle, "Microsoft.Compute/virtualMachineScaleSets")
    profile = scale_set["properties"]["virtualMachineProfile"]["networkProfile"]
    [card] = profile["networkInterfaceConfigurations"]
    return card["properties"]


def _rules(user: User, handle: sojourn.Handle) -> list[Any]:
    group = _found(user, handle, "Microsoft.Network/networkSecurityGroups")
    return [rule["properties"] for rule in group["properties"]["securityRules"]]


def test_a_subnet_of_the_user(laptop: SimAzure, user: User) -> None:
    subnet = user.make_network(user.make_group("mine"))
    before = laptop.inventory()
    options = {"network": f"{subnet},private", "ssh_from": "10.0.0.0/8"}
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="az", region="us-east", options=options))
    card = _card(user, handle)
    [address] = card["ipConfigurations"]
    assert address["properties"]["subnet"]["id"].lower() == subnet.lower()
    assert "publicIPAddressConfiguration" not in address["properties"]
    assert str(handle.id) in card["networkSecurityGroup"]["id"]
    [rule] = _rules(user, handle)
    assert rule["sourceAddressPrefixes"] == ["10.0.0.0/8"]
    handle.delete(fetch=False)
    assert laptop.inventory() == before
    user.delete("resourceGroups/mine")


def test_the_firewall_lets_in_who_may_connect(laptop: SimAzure) -> None:
    doors.ssh_from_decides_who_gets_in(laptop, "az")


def test_nobody_may_connect(laptop: SimAzure, user: User) -> None:
    handle = sojourn.create(_task(ssh_from="none"))
    assert _rules(user, handle) == []
    [address] = _card(user, handle)["ipConfigurations"]
    assert "publicIPAddressConfiguration" in address["properties"]
    handle.delete(fetch=False)


def test_what_is_not_there_is_refused(laptop: SimAzure, user: User) -> None:
    subnet = user.make_network(user.make_group("mine"))

    def refused(given: str) -> str:
        task = _task(network=given)
        with pytest.raises(InvalidInput) as caught:
            list(AzureCloud(Account()).check(Context(), task))
        assert caught.value.path == "options.network"
        return caught.value.message

    assert "must be the ID of a subnet" in refused("my-network")
    assert "not found" in refused(f"{subnet}-other")
    assert "the network is in eastus, but the task is in westus2" in refused(subnet)
    user.delete("resourceGroups/mine")


def test_tags_that_the_subscription_demands(
    laptop: SimAzure, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOJOURN_TAGS", "cost-center=42")
    handle = sojourn.create(_task())
    assert user.get(f"resourceGroups/{handle.id}")["tags"]["cost-center"] == "42"
    handle.delete(fetch=False)


def _scale_set(user: User, handle: sojourn.Handle) -> Any:
    return _found(user, handle, "Microsoft.Compute/virtualMachineScaleSets")["properties"]


def test_a_gang_is_in_one_place_and_needs_no_rules_in_its_own_network(
    laptop: SimAzure, user: User
) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="az", gang=True, parallelism=2))
    found = _scale_set(user, handle)
    assert found["singlePlacementGroup"] is True
    near = found["proximityPlacementGroup"]["id"]
    assert near.endswith(f"/proximityPlacementGroups/{handle.id}")
    assert [rule["destinationPortRange"] for rule in _rules(user, handle)] == ["22"]
    handle.delete(fetch=False)
    assert laptop.inventory() == []


def test_other_tasks_may_be_anywhere(laptop: SimAzure, user: User) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="az", parallelism=2))
    found = _scale_set(user, handle)
    assert found["singlePlacementGroup"] is False
    assert "proximityPlacementGroup" not in found
    handle.delete(fetch=False)


def test_a_gang_in_a_network_with_others_is_open_to_its_own_alone(
    laptop: SimAzure, user: User
) -> None:
    subnet = user.make_network(user.make_group("mine"))
    options = {"network": subnet}
    task = Task("#!/bin/sh\n", cloud="az", region="us-east", gang=True, options=options)
    handle = sojourn.create(task)
    [address] = _card(user, handle)["ipConfigurations"]
    [members] = address["properties"]["applicationSecurityGroups"]
    assert members["id"].endswith(f"/applicationSecurityGroups/{handle.id}")
    ssh, among, others = sorted(_rules(user, handle), key=lambda rule: int(rule["priority"]))
    assert ssh["destinationPortRange"] == "22"
    assert (among["access"], others["access"]) == ("Allow", "Deny")
    for side in ("source", "destination"):
        [group] = among[f"{side}ApplicationSecurityGroups"]
        assert group["id"] == members["id"]
        assert others[f"{side}AddressPrefix"] == "*"
    handle.delete(fetch=False)
    user.delete("resourceGroups/mine")
    assert laptop.inventory() == []


def test_a_gang_that_is_too_large_for_one_place_says_so(laptop: SimAzure) -> None:
    task = Task("#!/bin/sh\n", cloud="az", gang=True, parallelism=101)
    [note] = AzureCloud(Account()).check(Context(), task)
    assert "at most 100 machines near each other" in note
