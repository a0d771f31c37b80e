"""Managed instance groups of a simulated Google Cloud project, without machines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.market import Refusal
from tests.simcloud.gcp.project import AGENT, PROJECT
from tests.simcloud.gcp_user import ZONE, GoogleError, User, properties, refused, request_id
from tests.support.waiting import until

_GROUP = f"zones/{ZONE}/instanceGroupManagers/a-group"


def _running(gcp: SimGCP, count: int) -> list[Instance]:
    def found() -> list[Instance]:
        return [each for each in gcp.instances() if each.state == "running"]

    gcp.wait(lambda: len(found()) == count)
    return found()


def _stable(googler: User) -> None:
    until(lambda: googler.group()["status"]["isStable"])


def test_a_group_reaches_its_size(gcp: SimGCP, googler: User) -> None:
    googler.make_template()
    operation = googler.make_group(2)
    assert operation["operationType"] == "insert"
    first = {each.name for each in _running(gcp, 2)}
    _stable(googler)
    assert all(name.startswith("machine-") and len(name) == 12 for name in first)
    assert {member["currentAction"] for member in googler.members()} == {"NONE"}
    assert googler.group()["currentActions"]["none"] == 2
    googler.resize(3)
    assert first < {each.name for each in _running(gcp, 3)}
    googler.resize(1)
    _running(gcp, 1)
    _stable(googler)
    googler.resize(0)
    until(lambda: not googler.members())
    googler.remove_all()
    assert gcp.inventory() == []


def test_deleted_members_lower_the_size(gcp: SimGCP, googler: User) -> None:
    googler.make_template()
    googler.make_group(2)
    one, other = _running(gcp, 2)
    url = f"{_GROUP}/deleteInstances"
    googler.post(url, {"instances": [f"zones/{ZONE}/instances/{one.name}"]})
    assert googler.group()["targetSize"] == 1
    gcp.wait(lambda: one.gone)
    until(lambda: [member["name"] for member in googler.members()] == [other.name])
    gone = {"instances": [f"zones/{ZONE}/instances/{one.name}"]}
    assert "Not a member" in refused(400, "invalid", googler.post, url, gone)
    googler.post(url, {**gone, "skipInstancesOnValidationError": True})
    assert googler.group()["targetSize"] == 1


def test_what_is_lost_comes_back_under_its_name(gcp: SimGCP, googler: User) -> None:
    googler.make_template(spot=True)
    googler.make_group(1)
    [first] = _running(gcp, 1)
    gcp.preempt(first.id, notice=False)
    gcp.wait(lambda: first.gone)
    [second] = _running(gcp, 1)
    assert (second.name, second.id != first.id) == (first.name, True)
    googler.delete(f"zones/{ZONE}/instances/{second.name}")
    assert second.gone
    [third] = _running(gcp, 1)
    assert third.name == first.name


def test_a_group_that_does_not_repair(gcp: SimGCP, googler: User) -> None:
    googler.make_template(spot=True)
    googler.make_group(1, instanceLifecyclePolicy={"defaultActionOnFailure": "DO_NOTHING"})
    [first] = _running(gcp, 1)
    gcp.preempt(first.id, notice=False)
    assert first.status == "TERMINATED"
    assert googler.get(f"zones/{ZONE}/instances/{first.name}")["status"] == "TERMINATED"
    path = f"compute/v1/projects/{PROJECT}/{_GROUP}"
    repair = {"instanceLifecyclePolicy": {"defaultActionOnFailure": "REPAIR"}}
    googler.finished(googler.call("PATCH", "compute", path, repair))
    [second] = _running(gcp, 1)
    assert second.name == first.name


def test_no_capacity(gcp: SimGCP, googler: User) -> None:
    gcp.capacity("e2-standard-2", ZONE, False)
    googler.make_template()
    googler.make_group(1)
    until(lambda: len(googler.errors()) >= 2)
    error = googler.errors()[0]
    assert error["error"]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert f"projects/{PROJECT}/zones/{ZONE}" in error["error"]["message"]
    assert error["instanceActionDetails"]["action"] == "CREATING"
    [member] = googler.members()
    assert member["currentAction"] == "CREATING"
    assert "instanceStatus" not in member
    assert "id" not in member
    [last] = member["lastAttempt"]["errors"]["errors"]
    assert last["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert not googler.group()["status"]["isStable"]
    gcp.capacity("e2-standard-2", ZONE, 1)
    [instance] = _running(gcp, 1)
    assert instance.name == member["name"]
    until(lambda: googler.members()[0].get("lastAttempt") is None)


def test_quotas(gcp: SimGCP, googler: User) -> None:
    gcp.quota("us-west1", "CPUS", 2)
    googler.make_template()
    googler.make_group(2)
    _running(gcp, 1)
    until(lambda: bool(googler.errors()))
    error = googler.errors()[0]["error"]
    assert error["code"] == "QUOTA_EXCEEDED"
    assert error["message"] == "Quota 'CPUS' exceeded.  Limit: 2.0 in region us-west1."
    quotas = {each["metric"]: each for each in googler.get("regions/us-west1")["quotas"]}
    assert (quotas["CPUS"]["limit"], quotas["CPUS"]["usage"]) == (2.0, 2.0)
    gcp.quota("us-west1", "CPUS", 4)
    _running(gcp, 2)


def test_how_many_there_can_be(gcp: SimGCP, googler: User) -> None:
    gcp.quota("global", "INSTANCE_TEMPLATES", 1)
    gcp.quota("us-west1", "INSTANCE_GROUP_MANAGERS", 1)
    googler.make_template()
    message = refused(403, "quotaExceeded", googler.make_template, name="other")
    assert message == "Quota 'INSTANCE_TEMPLATES' exceeded.  Limit: 1.0 globally."
    googler.make_group()
    message = refused(403, "quotaExceeded", googler.make_group, name="other")
    assert "Limit: 1.0 in region us-west1" in message


def test_a_disk_that_is_kept_is_in_the_way(gcp: SimGCP, googler: User) -> None:
    given = properties(spot=True)
    given["disks"][0]["autoDelete"] = False
    googler.make_template(**given)
    googler.make_group(1)
    [first] = _running(gcp, 1)
    gcp.preempt(first.id, notice=False)
    until(lambda: bool(googler.errors()))
    assert googler.errors()[0]["error"]["code"] == "RESOURCE_ALREADY_EXISTS"
    googler.resize(0)
    until(lambda: not googler.members())
    assert f"disk {first.name} in {ZONE}" in gcp.inventory()
    googler.delete(f"zones/{ZONE}/disks/{first.name}")
    googler.remove_all()
    assert gcp.inventory() == []


def test_gpus(gcp: SimGCP, googler: User) -> None:
    gpu = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
    given = {
        "machineType": "n1-standard-4",
        "guestAccelerators": [gpu],
        "scheduling": {"onHostMaintenance": "TERMINATE"},
    }
    googler.make_template(**given)  # type: ignore[arg-type]
    gcp.quota("global", "GPUS_ALL_REGIONS", 0)
    googler.make_group(1)
    until(lambda: bool(googler.errors()))
    assert "GPUS_ALL_REGIONS" in googler.errors()[0]["error"]["message"]
    gcp.quota("global", "GPUS_ALL_REGIONS", 1)
    [instance] = _running(gcp, 1)
    [shown] = googler.get(f"zones/{ZONE}/instances/{instance.name}")["guestAccelerators"]
    assert shown["acceleratorType"].endswith(f"/zones/{ZONE}/acceleratorTypes/nvidia-tesla-t4")
    wrong = {"machineType": "g2-standard-4", "name": "built-in"}
    assert "live migration" in refused(400, "invalid", googler.make_template, **wrong)


@pytest.mark.parametrize("why", list(Refusal))
def test_refusals(gcp: SimGCP, googler: User, why: Refusal) -> None:
    gcp.refuse(why, times=1)
    googler.make_template()
    googler.make_group(1)
    until(lambda: bool(googler.errors()))
    assert googler.errors()[0]["error"]["code"] == why.value.split()[0]
    _running(gcp, 1)


def test_a_type_that_the_zone_does_not_have(gcp: SimGCP, googler: User) -> None:
    googler.make_template(machineType="e2-huge-1000")
    googler.make_group(1)
    until(lambda: bool(googler.errors()))
    assert "machineTypes/e2-huge-1000" in googler.errors()[0]["error"]["message"]
    googler.resize(0)
    until(lambda: not googler.members())


def test_a_policy_without_googles_own_account_stops_groups(gcp: SimGCP, googler: User) -> None:
    googler.unbind(AGENT)
    googler.make_template()
    googler.make_group(1)
    until(lambda: bool(googler.errors()))
    assert googler.errors()[0]["error"]["code"] == "PERMISSIONS_ERROR"
    googler.bind("roles/editor", f"serviceAccount:{AGENT}")
    _running(gcp, 1)


def test_names_and_what_is_in_use(gcp: SimGCP, googler: User) -> None:
    missing = "was not found"
    assert missing in refused(404, "notFound", googler.make_group)
    googler.make_template()
    refused(409, "alreadyExists", googler.make_template)
    for name in ("A-group", "group-", "9-group", "g" * 64):
        refused(400, "invalid", googler.make_group, name=name)
    refused(400, "invalid", googler.make_group, 1, baseInstanceName="b" * 59)
    refused(400, "invalid", googler.make_group, -1)
    googler.make_group()
    refused(409, "alreadyExists", googler.make_group)
    message = refused(
        400,
        "resourceInUseByAnotherResource",
        googler.delete,
        "global/instanceTemplates/a-template",
    )
    assert message == (
        f"The instance_template resource 'projects/{PROJECT}/global/instanceTemplates/a-template' "
        f"is already being used by 'projects/{PROJECT}/{_GROUP}'"
    )
    refused(404, "notFound", googler.delete, f"zones/{ZONE}/instanceGroupManagers/other")
    refused(404, "notFound", googler.members, "other")
    googler.remove_all()
    refused(404, "notFound", googler.group)


def test_operations_take_their_time_and_can_be_repeated(gcp: SimGCP, googler: User) -> None:
    gcp.timing.operation = 1000.0
    body = {"name": "a-template", "properties": properties()}
    identity = request_id()
    begun = googler.begin("global/instanceTemplates", body, requestId=identity)
    again = googler.begin("global/instanceTemplates", body, requestId=identity)
    assert (begun["name"], begun["status"]) == (again["name"], "RUNNING")
    assert begun["clientOperationId"] == identity
    refused(404, "notFound", googler.get, "global/instanceTemplates/a-template")
    refused(409, "alreadyExists", googler.begin, "global/instanceTemplates", body)
    refused(400, "resourceNotReady", googler.make_group)
    zero = "00000000-0000-0000-0000-000000000000"
    for wrong in ("x", zero):
        refused(400, "invalid", googler.begin, "global/instanceTemplates", body, requestId=wrong)
    gcp.advance(1000)
    done = googler.finished(begun)
    assert done["progress"] == 100
    assert "error" not in done
    assert googler.get(f"global/operations/{done['name']}")["status"] == "DONE"
    names = [each["name"] for each in googler.get("global/operations")["items"]]
    assert names == [done["name"]]
    googler.get("global/instanceTemplates/a-template")
    refused(404, "notFound", googler.get, "global/operations/operation-other")


def test_an_operation_that_fails(gcp: SimGCP, googler: User) -> None:
    from tests.simcloud.gcp.market import quota_exceeded

    failure = quota_exceeded("INSTANCE_TEMPLATES", 100, "global")
    gcp.fail_operation("compute:instanceTemplates.insert", failure)
    done = googler.make_template()
    assert done["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"
    assert (done["httpErrorStatusCode"], done["httpErrorMessage"]) == (403, "FORBIDDEN")
    refused(404, "notFound", googler.get, "global/instanceTemplates/a-template")
    assert "error" not in googler.make_template()


def test_the_time_of_an_instance_runs_out(gcp: SimGCP, googler: User) -> None:
    gcp.timing.token = 10000.0
    scheduling = {
        "maxRunDuration": {"seconds": "3600"},
        "instanceTerminationAction": "DELETE",
    }
    googler.make_template(scheduling=scheduling)
    googler.make_group(1)
    [first] = _running(gcp, 1)
    gcp.advance(3000)
    assert first.status == "RUNNING"
    gcp.advance(601)
    gcp.wait(lambda: first.gone)
    until(lambda: not googler.members())
    assert googler.group()["targetSize"] == 0
    assert len(gcp.instances()) == 1


def test_a_preempted_instance_may_be_deleted_at_once(gcp: SimGCP, googler: User) -> None:
    scheduling = {
        "provisioningModel": "SPOT",
        "automaticRestart": False,
        "instanceTerminationAction": "DELETE",
    }
    gcp.timing.respawn = 1000.0
    googler.make_template(scheduling=scheduling)
    googler.make_group(1)
    [first] = _running(gcp, 1)
    gcp.preempt(first.name, notice=True)
    gcp.wait(lambda: first.gone)
    until(lambda: [each["currentAction"] for each in googler.members()] == ["RECREATING"])
    assert [each["name"] for each in googler.members()] == [first.name]
    refused(404, "notFound", googler.get, f"zones/{ZONE}/instances/{first.name}")
    gcp.advance(1000)
    _running(gcp, 1)


def test_another_network(gcp: SimGCP, googler: User) -> None:
    gcp.network("lonely", {"us-west1": "west"})
    interface: dict[str, Any] = {"network": "global/networks/lonely"}
    given: dict[str, Any] = {"networkInterfaces": [interface]}
    assert "Subnetwork must be" in refused(400, "invalid", googler.make_template, **given)
    interface["subnetwork"] = "regions/us-west1/subnetworks/missing"
    refused(404, "notFound", googler.make_template, **given)
    interface["subnetwork"] = "regions/us-west1/subnetworks/west"
    googler.make_template(**given)
    googler.make_group(1)
    [instance] = _running(gcp, 1)
    [shown] = googler.get(f"zones/{ZONE}/instances/{instance.name}")["networkInterfaces"]
    assert shown["subnetwork"].endswith("/regions/us-west1/subnetworks/west")
    assert "accessConfigs" not in shown
    googler.remove_all()
    assert gcp.inventory() == []
    gcp.remove_default_network()
    refused(404, "notFound", googler.make_template)
    refused(404, "notFound", googler.get, "global/networks/default")


def test_groups_and_instances_are_listed_everywhere(gcp: SimGCP, googler: User) -> None:
    googler.make_template(labels={"task": "one"})
    googler.make_group(2)
    other = "europe-west1-d"
    body = {
        "name": "other",
        "baseInstanceName": "other",
        "instanceTemplate": "global/instanceTemplates/a-template",
        "targetSize": 1,
    }
    googler.post(f"zones/{other}/instanceGroupManagers", body)
    _running(gcp, 3)

    def names(path: str, **query: Any) -> list[str]:
        collection = path.rpartition("/")[2]
        items = googler.get(path, **query)["items"].values()
        return [record["name"] for scope in items for record in scope.get(collection, [])]

    path = "aggregated/instanceGroupManagers"
    assert sorted(names(path)) == ["a-group", "other"]
    assert names(path, filter='name = "other"') == ["other"]
    assert names(path, filter="name eq a-.*") == ["a-group"]
    instances = "aggregated/instances"
    assert len(names(instances, filter="labels.task=one")) == 3
    assert names(instances, filter="labels.task=two") == []
    assert len(names(instances, filter="(labels.task:*) (status=RUNNING)")) == 3
    assert len(names(instances, filter="labels.task=one AND name:other-*")) == 1
    with pytest.raises(GoogleError, match="Invalid list filter"):
        names(instances, filter="labels.task >")
    assert googler.get(instances)["items"]["zones/us-east1-b"]["warning"]["code"]
    few = googler.get(instances, filter="name:other-*", fields="items/*/instances(name,labels)")
    [name] = names(instances, filter="name:other-*")
    assert few["items"][f"zones/{other}"]["instances"] == [
        {"name": name, "labels": {"task": "one"}}
    ]
    found = googler.get(f"zones/{ZONE}/instances", maxResults=1)
    rest = googler.get(f"zones/{ZONE}/instances", pageToken=found["nextPageToken"])
    assert len(found["items"]) == len(rest["items"]) == 1
    assert "nextPageToken" not in rest
