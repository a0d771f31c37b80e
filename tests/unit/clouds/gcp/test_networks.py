"""Networks that users choose, and who may connect to machines there."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.machines import Offers
from sojourn.clouds.gcp.networks import NetworkPaths
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.project import PROJECT
from tests.simcloud.gcp_user import User
from tests.unit.clouds.vm import doors

_ROOT = f"projects/{PROJECT}"


def _task(**options: str) -> Task:
    return Task("#!/bin/sh\n", cloud="gcp", options=options)


def _network(given: str) -> NetworkPaths:
    return Offers(Account()).find(_task(network=given)).network


def _refused(given: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        _network(given)
    assert caught.value.path == "options.network"
    return caught.value.message


def test_a_network_of_the_project(project: SimGCP) -> None:
    project.network("lab", {"us-west1": "machines", "us-east1": "others"})
    path, subnet = f"{_ROOT}/global/networks/lab", f"{_ROOT}/regions/us-west1/subnetworks/machines"
    assert _network("lab") == NetworkPaths(path, subnet)
    assert _network("lab/machines,private") == NetworkPaths(path, subnet, private=True)


def test_what_is_not_there_is_refused(project: SimGCP) -> None:
    project.network("lab", {"us-east1": "others"})
    assert "network labs not found in project" in _refused("labs")
    assert "has no subnet machines in us-west1; there is none" in _refused("lab/machines")
    assert "specify a subnet, as in lab/SUBNET" in _refused("lab")
    assert "must be a network, or network/subnet" in _refused("a/b/c")


def test_without_a_default_network_another_can_be_used(project: SimGCP) -> None:
    project.remove_default_network()
    project.network("lab", {"us-west1": "machines"})
    handle = sojourn.create(_task(network="lab,private"))
    [template] = project._store.of(f"{_ROOT}/global", "instanceTemplates")
    [card] = template["properties"]["networkInterfaces"]
    assert "accessConfigs" not in card
    assert card["subnetwork"].endswith("/subnetworks/machines")
    handle.delete(fetch=False)
    assert project.inventory() == []


def _rules(user: User, name: str) -> dict[str, Any]:
    found = user.get("global/firewalls", filter=f"name eq {name}.*").get("items", [])
    return {rule["name"].removeprefix(name): rule for rule in found}


@pytest.mark.parametrize(
    ("given", "opened", "closed"),
    [
        ("", ["0.0.0.0/0"], []),
        ("203.0.113.0/24", ["203.0.113.0/24"], ["0.0.0.0/0"]),
        ("none", [], ["0.0.0.0/0"]),
    ],
)
def test_who_may_connect(
    project: SimGCP, user: User, given: str, opened: list[str], closed: list[str]
) -> None:
    """The default network lets everybody in, by a rule that comes after these."""
    handle = sojourn.create(_task(ssh_from=given))
    rules = _rules(user, str(handle.id))
    allowed = [rule for rule in rules.values() if rule.get("allowed")]
    denied = [rule for rule in rules.values() if rule.get("denied")]
    assert [r for rule in allowed for r in rule["sourceRanges"]] == opened
    assert {r for rule in denied for r in rule["sourceRanges"]} == set(closed)
    for rule in (*allowed, *denied):
        assert rule["targetTags"] == [str(handle.id)]
        assert rule["priority"] < 65534
    if allowed and denied:
        assert allowed[0]["priority"] < denied[0]["priority"]
    assert [str(task.id) for task in sojourn.list_tasks()] == [str(handle.id)]
    handle.delete(fetch=False)
    assert project.inventory() == []


def test_the_firewall_lets_in_who_may_connect(project: SimGCP) -> None:
    doors.ssh_from_decides_who_gets_in(project, "gcp")


@pytest.mark.parametrize("ssh_from", ["", "203.0.113.0/24", "none"])
def test_a_gang_is_open_to_its_own_machines_alone(
    project: SimGCP, user: User, ssh_from: str
) -> None:
    """The default network lets in all that comes from inside, by a rule that comes after these."""
    options = {"ssh_from": ssh_from}
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="gcp", gang=True, options=options))
    rules = _rules(user, str(handle.id))
    assert {name: rule["priority"] for name, rule in rules.items()} == {
        "-gang": 800,
        "": 900,
        "-closed": 1000,
    }
    assert all(rule["targetTags"] == [str(handle.id)] for rule in rules.values())
    assert rules["-gang"]["sourceTags"] == [str(handle.id)]
    assert "sourceRanges" not in rules["-gang"]
    assert rules["-gang"]["allowed"] == [{"IPProtocol": "all"}]
    assert rules["-closed"]["denied"] == [{"IPProtocol": "all"}]
    assert rules["-closed"]["sourceRanges"] == ["0.0.0.0/0"]
    assert [str(task.id) for task in sojourn.list_tasks()] == [str(handle.id)]
    handle.delete(fetch=False)
    assert project.inventory() == []
