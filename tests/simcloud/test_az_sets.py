"""Scale sets of the simulated Azure, without machines: what they keep, lose, refuse and restore."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.offers import Refusal
from tests.simcloud.az_user import RefusedError, User, capacity, refused, resize, scale_set, states
from tests.support.waiting import until

_SETS = "providers/Microsoft.Compute/virtualMachineScaleSets"


@pytest.fixture
def group(az_user: User) -> str:
    return az_user.make_group()


@pytest.fixture
def subnet(az_user: User, group: str) -> str:
    return az_user.make_network(group)


# Making and deleting


def test_a_scale_set_grows_and_shrinks(az: SimAzure, az_user: User, group: str) -> None:
    made = az_user.make_set(group, 2)["id"]
    assert states(az_user, made) == {"0": "PowerState/running", "1": "PowerState/running"}
    resize(az_user, made, 3)
    assert list(states(az_user, made)) == ["0", "1", "2"]
    resize(az_user, made, 1)
    until(lambda: list(states(az_user, made)) == ["0"])
    resize(az_user, made, 2)
    assert list(states(az_user, made)) == ["0", "3"]  # numbers are not used again
    [first, _] = az_user.machines(made)
    assert first["name"] == "a-set_0"
    assert first["properties"]["osProfile"]["computerName"] == "a-set000000"
    assert "/resourceGroups/A-GROUP/" in first["id"]  # as Azure writes it here
    assert len(az_user.get(f"{made}/publicipaddresses")["value"]) == 2
    assert len(az_user.get(f"{made}/networkInterfaces")["value"]) == 2
    assert len(az_user.get(_SETS)["value"]) == 1
    az_user.delete(made)
    refused("ResourceNotFound", az_user.call("GET", made))
    assert az_user.call("DELETE", made).status_code == 204


def test_what_callers_are_told_has_no_secrets(az_user: User, group: str) -> None:
    made = az_user.make_set(group, 1)
    assert "customData" not in str(made)
    assert "customData" not in str(az_user.machines(made["id"]))


def test_deleting_instances_lowers_thecapacity(az_user: User, group: str) -> None:
    made = az_user.make_set(group, 3)["id"]
    answer = az_user.call("POST", f"{made}/delete", {"instanceIds": ["1"]})
    assert answer.status_code == 202
    assert {"location", "azure-asyncoperation"} <= set(answer.headers)
    az_user.finish(answer)
    assert capacity(az_user, made) == 2
    assert list(states(az_user, made)) == ["0", "2"]
    az_user.delete(f"{made}/virtualMachines/0")
    assert capacity(az_user, made) == 1
    assert az_user.call("DELETE", f"{made}/virtualMachines/0").status_code == 204
    wrong = az_user.call("POST", f"{made}/delete", {"instanceIds": ["7"]})
    refused("InvalidParameter", wrong)
    refused("InvalidRequestContent", az_user.call("POST", f"{made}/delete", {}))


def test_changes_get_into_each_others_way(az: SimAzure, az_user: User, group: str) -> None:
    az.timing.scale_set = 60
    body = scale_set(az_user.make_network(group), 1)
    path = f"{group}/{_SETS}/a-set"
    first = az_user.call("PUT", path, body)
    assert first.status_code == 201
    assert first.json()["properties"]["provisioningState"] == "Creating"
    one = {"sku": {"capacity": 2}}
    answer = az_user.call("PATCH", path, one)
    assert answer.status_code == 409
    refused("Conflict", answer)
    az.advance(61)
    az_user.finish(first)
    older = az_user.call("PATCH", path, one)
    assert older.json()["properties"]["provisioningState"] == "Updating"
    newer = az_user.call("PATCH", path, {"sku": {"capacity": 3}})
    told = az_user.poll(older.headers["azure-asyncoperation"]).json()
    assert (told["status"], told["error"]["code"]) == ("Canceled", "OperationPreempted")
    az.advance(61)
    az_user.finish(newer)
    assert len(az_user.machines(path)) == 3


def test_some_things_cannot_be_changed(az_user: User, group: str, subnet: str) -> None:
    path = f"{group}/{_SETS}/a-set"
    body = scale_set(subnet, 1, spot="Delete")
    az_user.put(path, body)
    assert az_user.call("PUT", path, body).status_code == 200
    for where, value in ((f"{_VM}.priority", "Low"), (f"{_VM}.osProfile.adminUsername", "other")):
        other = json.loads(json.dumps(body))
        if where.endswith("adminUsername"):
            _changed(other, f"{_KEY}.path", "/home/other/.ssh/authorized_keys")
        answer = az_user.call("PUT", path, _changed(other, where, value))
        refused("PropertyChangeNotAllowed", answer)


def test_a_patch_changes_what_it_names(az: SimAzure, az_user: User, group: str) -> None:
    made = az_user.make_set(group, 1)["id"]
    script = base64.b64encode(b"#!/bin/sh\necho new\n").decode()
    patch = {
        "tags": {"a": "b"},
        "properties": {"virtualMachineProfile": {"osProfile": {"customData": script}}},
    }
    az_user.finish(az_user.call("PATCH", made, patch))
    resize(az_user, made, 2)
    old, new = az.instances()
    assert (old.custom_data, new.custom_data) == (b"#!/bin/sh\n", b"#!/bin/sh\necho new\n")
    shown = az_user.machines(made)
    assert [each["properties"]["latestModelApplied"] for each in shown] == [False, True]
    assert az_user.get(made)["tags"] == {"a": "b"}
    refused("InvalidParameter", az_user.call("PATCH", made, {"sku": {"capacity": -1}}))
    wrong = {"properties": {"virtualMachineProfile": {"priority": "Spot"}}}
    refused("InvalidRequestContent", az_user.call("PATCH", made, wrong))


def test_more_are_made_than_asked_for_unless_this_is_forbidden(
    az: SimAzure, az_user: User, group: str
) -> None:
    made = az_user.make_set(group, 1, properties={"overprovision": True})["id"]
    assert len(az.instances()) == 2
    until(lambda: list(states(az_user, made)) == ["0"])
    assert capacity(az_user, made) == 1


def test_a_network_that_is_not_finished_cannot_be_used(
    az: SimAzure, az_user: User, group: str, subnet: str
) -> None:
    az.timing.network = 60
    rules: dict[str, Any] = {"location": "eastus", "properties": {"securityRules": []}}
    firewall = f"{group}/providers/Microsoft.Network/networkSecurityGroups/late"
    az_user.call("PUT", firewall, rules)
    body = scale_set(subnet, 0)
    path = f"{group}/{_SETS}/a-set"
    card = body["properties"]["virtualMachineProfile"]["networkProfile"]
    inner = card["networkInterfaceConfigurations"][0]["properties"]
    inner["networkSecurityGroup"] = {"id": firewall}
    refused("ReferencedResourceNotProvisioned", az_user.call("PUT", path, body))
    inner["networkSecurityGroup"] = {"id": f"{firewall}x"}
    refused("InvalidResourceReference", az_user.call("PUT", path, body))


# What cannot be


def _changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    inner: Any = body
    *parts, last = path.split(".")
    for part in parts:
        inner = inner[int(part)] if part.isdigit() else inner.setdefault(part, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return body


_VM = "properties.virtualMachineProfile"
_KEY = f"{_VM}.osProfile.linuxConfiguration.ssh.publicKeys.0"


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("sku.capacity", 1001, "InvalidParameter"),
        ("sku.name", "Standard_Huge", "InvalidParameter"),
        ("sku.name", "Standard_NC6", "SkuNotAvailable"),
        ("sku.name", "Standard_D2ps_v5", "BadRequest"),
        ("properties.upgradePolicy", None, "InvalidParameter"),
        ("properties.spotRestorePolicy", {"enabled": True}, "InvalidParameter"),
        ("properties.automaticRepairsPolicy", {"enabled": True}, "InvalidParameter"),
        (f"{_VM}.evictionPolicy", "Delete", "InvalidParameter"),
        (f"{_VM}.billingProfile", {"maxPrice": -1}, "InvalidParameter"),
        (f"{_VM}.osProfile.adminUsername", "admin", "InvalidParameter"),
        (f"{_VM}.osProfile.computerNamePrefix", "-x", "InvalidParameter"),
        (f"{_VM}.osProfile.customData", "no base64!", "InvalidParameter"),
        (
            f"{_VM}.osProfile.customData",
            base64.b64encode(b"x" * 65538).decode(),
            "InvalidParameter",
        ),
        (f"{_KEY}.keyData", "ssh-dss AAAA", "InvalidParameter"),
        (f"{_KEY}.path", "/root/.ssh/authorized_keys", "InvalidParameter"),
        (f"{_VM}.storageProfile.imageReference.sku", "missing", "PlatformImageNotFound"),
        (f"{_VM}.storageProfile.osDisk.diskSizeGB", 10, "InvalidParameter"),
        (f"{_VM}.networkProfile", None, "InvalidParameter"),
        ("location", "westus", "InvalidResourceReference"),
        ("plan", {"name": "a", "publisher": "b", "product": "c"}, "VMMarketplaceInvalidInput"),
        ("identity", {"type": "UserAssigned"}, "InvalidParameter"),
    ],
)
def test_what_does_not_fit_is_refused(
    az: SimAzure, az_user: User, group: str, subnet: str, path: str, value: Any, code: str
) -> None:
    body = _changed(scale_set(subnet, 1), path, value)
    refused(code, az_user.call("PUT", f"{group}/{_SETS}/a-set", body))
    assert not az.instances()


def test_spot_has_rules_of_its_own(az_user: User, group: str, subnet: str) -> None:
    path = f"{group}/{_SETS}/a-set"
    for where, value in (
        ("sku.name", "Standard_B1s"),
        (f"{_VM}.billingProfile.maxPrice", 0),
        (f"{_VM}.billingProfile.maxPrice", 0.123456),
        ("properties.spotRestorePolicy", {"enabled": True, "restoreTimeout": "an hour"}),
    ):
        body = _changed(scale_set(subnet, 1, spot="Delete"), where, value)
        refused("InvalidParameter", az_user.call("PUT", path, body))
    az_user.put(path, _changed(scale_set(subnet, 1, spot="Delete"), f"{_VM}.evictionPolicy", None))


def test_images_with_plans_need_their_terms_accepted(
    az_user: User, group: str, subnet: str
) -> None:
    images = "providers/Microsoft.Compute/locations/eastus/publishers"
    offer = f"{images}/nvidia/artifacttypes/vmimage/offers/ngc_azure_17_11"
    [sku] = az_user.get(f"{offer}/skus")
    [version] = az_user.get(f"{offer}/skus/{sku['name']}/versions")
    image = az_user.get(f"{offer}/skus/{sku['name']}/versions/{version['name']}")
    plan = image["properties"]["plan"]
    body = scale_set(subnet, 0)
    reference = {
        "publisher": "nvidia",
        "offer": "ngc_azure_17_11",
        "sku": sku["name"],
        "version": "latest",
    }
    body["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"] = reference
    path = f"{group}/{_SETS}/a-set"
    refused("VMMarketplaceInvalidInput", az_user.call("PUT", path, body))
    body["plan"] = plan
    refused("MarketplacePurchaseEligibilityFailed", az_user.call("PUT", path, body))
    terms = (
        f"providers/Microsoft.MarketplaceOrdering/offerTypes/virtualmachine/publishers/nvidia/"
        f"offers/ngc_azure_17_11/plans/{plan['name']}/agreements/current"
    )
    told = az_user.get(terms)["properties"]
    az_user.put(terms, {"properties": {**told, "accepted": True}})
    az_user.put(path, body)


def test_sizes_and_quotas_are_told_and_kept(
    az: SimAzure, az_user: User, group: str, subnet: str
) -> None:
    sizes = az_user.get("providers/Microsoft.Compute/skus", **{"$filter": "location eq 'eastus'"})
    by_name = {each["name"]: each for each in sizes["value"]}
    assert {"name": "LowPriorityCapable", "value": "False"} in by_name["Standard_B1s"][
        "capabilities"
    ]
    assert by_name["Standard_NC6"]["restrictions"]
    az.quota("standardDSv5Family", "eastus", 4)
    az.quota("lowPriorityCores", "eastus", 2)
    az_user.make_set(group, 1, subnet=subnet)
    body = scale_set(subnet, 2)
    answer = az_user.call("PUT", f"{group}/{_SETS}/other", body)
    assert answer.status_code == 409
    text = refused("OperationNotAllowed", answer)
    assert "Current Limit: 4, Current Usage: 2, Additional Required: 4" in text
    spot = az_user.call("PUT", f"{group}/{_SETS}/other", scale_set(subnet, 2, spot="Delete"))
    assert "LowPriorityCores" in refused("OperationNotAllowed", spot)
    usages = az_user.get("providers/Microsoft.Compute/locations/eastus/usages")["value"]
    [family] = [each for each in usages if each["name"]["value"] == "standardDSv5Family"]
    assert (family["currentValue"], family["limit"]) == (2, 4)


def test_a_price_that_is_too_low_is_refused(
    az: SimAzure, az_user: User, group: str, subnet: str
) -> None:
    az.spot_price("Standard_D2s_v5", 0.02)
    body = scale_set(subnet, 1, spot="Delete")
    price = body["properties"]["virtualMachineProfile"]["billingProfile"]
    path = f"{group}/{_SETS}/a-set"
    price["maxPrice"] = 0.01
    text = refused("OperationNotAllowed", az_user.call("PUT", path, body))
    assert "lower than the current price '0.02'" in text
    price["maxPrice"] = 0.02
    az_user.put(path, body)


# When there is no room


def test_without_capacity_an_instance_fails_and_stays(
    az: SimAzure, az_user: User, group: str, subnet: str
) -> None:
    az.capacity("Standard_D2s_v5", "eastus", 1)
    path = f"{group}/{_SETS}/a-set"
    answer = az_user.call("PUT", path, scale_set(subnet, 2))
    assert answer.status_code == 201
    with pytest.raises(RefusedError, match="AllocationFailed"):
        az_user.finish(answer)
    assert az_user.get(path)["properties"]["provisioningState"] == "Failed"
    assert capacity(az_user, path) == 2
    assert states(az_user, path) == {
        "0": "PowerState/running",
        "1": "ProvisioningState/failed/AllocationFailed",
    }
    az.capacity("Standard_D2s_v5", "eastus", True)
    resize(az_user, path, 2)  # which changes nothing: they are two
    assert states(az_user, path)["1"].endswith("AllocationFailed")
    az_user.finish(az_user.call("POST", f"{path}/delete", {"instanceIds": ["1"]}))
    resize(az_user, path, 2)
    assert states(az_user, path) == {"0": "PowerState/running", "2": "PowerState/running"}
    since = (datetime.now(timezone.utc) - timedelta(minutes=5)).isoformat()
    log = "providers/Microsoft.Insights/eventtypes/management/values"
    query = f"eventTimestamp ge '{since}' and resourceGroupName eq 'a-group'"
    [event] = az_user.get(log, **{"$filter": query})["value"]
    assert "AllocationFailed" in event["properties"]["statusMessage"]


def test_reasons_are_told_at_once_or_by_the_operation(
    az: SimAzure, az_user: User, group: str, subnet: str
) -> None:
    path = f"{group}/{_SETS}/a-set"
    for why, code in ((Refusal.SIZE, "SkuNotAvailable"), (Refusal.QUOTA, "OperationNotAllowed")):
        az.refuse(why, times=1)
        refused(code, az_user.call("PUT", path, scale_set(subnet, 1)))
    az.refuse(Refusal.CONSTRAINTS)
    with pytest.raises(RefusedError, match="OverconstrainedAllocationRequest"):
        az_user.put(path, scale_set(subnet, 1, spot="Delete"))
    az.allow()
