"""The simulated Azure: groups, providers, accounts, identities, roles and networks."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import BLOB_CONTRIBUTOR, MACHINE_CONTRIBUTOR, User, refused

_ACCOUNT = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}


def test_groups_are_made_found_by_tag_and_deleted(az: SimAzure, az_user: User) -> None:
    assert az_user.call("HEAD", "resourceGroups/a-group").status_code == 404
    body = {"location": "East US", "tags": {"sojourn": "x", "other": "y"}}
    made = az_user.call("PUT", "resourceGroups/A-group", body)
    assert (made.status_code, made.json()["location"]) == (201, "eastus")
    assert az_user.call("HEAD", "resourceGroups/a-GROUP").status_code == 204
    assert az_user.get("resourcegroups/A-GROUP")["name"] == "A-group"
    assert az_user.call("PUT", "resourceGroups/a-group", body).status_code == 200
    for text, count in (
        ("tagName eq 'sojourn'", 1),
        ("tagName eq 'sojourn' and tagValue eq 'x'", 1),
        ("tagName eq 'sojourn' and tagValue eq 'z'", 0),
    ):
        found = az_user.get("resourceGroups", **{"$filter": text})["value"]
        assert len(found) == count
    elsewhere = az_user.call("PUT", "resourceGroups/a-group", {"location": "westus"})
    refused("InvalidResourceGroupLocation", elsewhere)
    az_user.delete("resourceGroups/a-group")
    refused("ResourceGroupNotFound", az_user.call("GET", "resourceGroups/a-group"))
    refused("ResourceGroupNotFound", az_user.call("DELETE", "resourceGroups/a-group"))


def test_a_group_takes_its_time_to_be_deleted_and_all_that_is_in_it(
    az: SimAzure, az_user: User
) -> None:
    az.timing.group_gone = 60
    group = az_user.make_group()
    az_user.make_container(group)
    az_user.make_set(group, 1)
    answer = az_user.call("DELETE", group)
    assert answer.status_code == 202
    assert "azure-asyncoperation" not in answer.headers
    assert az_user.get(group)["properties"]["provisioningState"] == "Deleting"
    assert az_user.poll(answer.headers["location"]).status_code == 202
    again = az_user.call("PUT", group, {"location": "eastus"})
    refused("ResourceGroupBeingDeleted", again)
    identity = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/late"
    late = az_user.call("PUT", identity, {"location": "eastus"})
    refused("ResourceGroupBeingDeleted", late)
    assert az_user.call("DELETE", group).status_code == 202
    az.advance(61)
    az_user.finish(answer)
    assert az_user.poll(answer.headers["location"]).status_code == 200
    assert az.inventory() == []


def test_resources_are_listed_by_type_tag_and_page(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    for number in range(5):
        path = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id{number}x"
        az_user.put(path, {"location": "eastus", "tags": {"number": str(number)}})
    az_user.make_network(group)
    kind = "resourceType eq 'Microsoft.ManagedIdentity/userAssignedIdentities'"
    assert len(az_user.get("resources", **{"$filter": kind})["value"]) == 5
    two = "tagName eq 'number' and tagValue eq '2'"
    [found] = az_user.get("resources", **{"$filter": two})["value"]
    assert found["name"] == "id2x"
    both = az_user.call("GET", "resources", **{"$filter": f"{two} and {kind}"})
    refused("InvalidFilterInQueryString", both)
    page = az_user.get("resources", **{"$filter": kind, "$top": "2"})
    names = [each["name"] for each in page["value"]]
    while "nextLink" in page:
        page = az_user.poll(page["nextLink"]).json()
        names += [each["name"] for each in page["value"]]
    assert names == [f"id{number}x" for number in range(5)]
    assert len(az_user.get(f"{group}/resources")["value"]) == 7


def test_providers_have_to_be_registered(az: SimAzure, az_user: User) -> None:
    az.unregister("Microsoft.Storage")
    group = az_user.make_group()
    path = f"{group}/providers/Microsoft.Storage/storageAccounts/anaccount"
    answer = az_user.call("PUT", path, _ACCOUNT)
    assert answer.status_code == 409
    text = refused("MissingSubscriptionRegistration", answer)
    assert "is not registered to use namespace 'Microsoft.Storage'" in text
    assert az_user.get("providers/Microsoft.Storage")["registrationState"] == "NotRegistered"
    answer = az_user.call("POST", "providers/Microsoft.Storage/register")
    assert answer.json()["registrationState"] == "Registering"
    az.wait(lambda: "microsoft.storage" in az.registered())
    assert az_user.get("providers/Microsoft.Storage")["registrationState"] == "Registered"
    az_user.put(path, _ACCOUNT)


def test_what_is_new_is_missing_in_lists_for_a_while(az: SimAzure, az_user: User) -> None:
    az.timing.listed = 60
    group = az_user.make_group("new", mine="yes")
    az_user.make_identity(group)
    query = {"$filter": "tagName eq 'mine'"}
    assert az_user.get("resourceGroups", **query)["value"] == []
    assert az_user.get("resources")["value"] == []
    assert az_user.get(group)["name"] == "new"
    az.advance(61)
    assert len(az_user.get("resourceGroups", **query)["value"]) == 1
    assert len(az_user.get("resources")["value"]) == 1


def test_locks_keep_things_from_being_deleted(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    identity = az_user.make_identity(group)["id"]
    az.lock(identity)
    for path in (identity, group):
        answer = az_user.call("DELETE", path)
        assert answer.status_code == 409
        refused("ScopeLocked", answer)
    az.lock(identity, on=False)
    az_user.delete(group)


def test_who_asks_too_early_is_noticed(az: SimAzure, az_user: User) -> None:
    az.timing.group_gone, az.timing.retry_after = 60, 15
    answer = az_user.call("DELETE", az_user.make_group())
    assert answer.headers["retry-after"] == "15"
    assert az.impatient == []
    az_user.poll(answer.headers["location"])
    assert len(az.impatient) == 1


# Storage accounts


def test_accounts_are_made_in_a_while_and_their_names_are_global(
    az: SimAzure, az_user: User
) -> None:
    az.timing.storage = 60
    group, other = az_user.make_group(), az_user.make_group("other")
    path = f"{group}/providers/Microsoft.Storage/storageAccounts/anaccount"
    answer = az_user.call("PUT", path, _ACCOUNT)
    assert (answer.status_code, answer.content) == (202, b"")
    assert "azure-asyncoperation" not in answer.headers
    assert az_user.poll(answer.headers["location"]).status_code == 202
    assert az_user.get(path)["properties"]["provisioningState"] == "Creating"
    refused("StorageAccountOperationInProgress", az_user.call("PUT", path, _ACCOUNT))
    box = f"{path}/blobServices/default/containers/box"
    refused("StorageAccountOperationInProgress", az_user.call("PUT", box, {}))
    az.advance(61)
    made = az_user.finish(answer)
    assert (
        made["properties"]["primaryEndpoints"]["blob"] == "https://anaccount.blob.core.windows.net/"
    )
    assert az_user.call("PUT", path, _ACCOUNT).status_code == 200
    az.timing.storage = 0.0
    elsewhere = path.replace("/a-group/", "/other/")
    refused("StorageAccountAlreadyExists", az_user.call("PUT", elsewhere, _ACCOUNT))
    az.foreign_account("taken")
    taken = path.replace("anaccount", "taken")
    refused("StorageAccountAlreadyTaken", az_user.call("PUT", taken, _ACCOUNT))
    for name in ("ab", "An", "with-hyphen", "x" * 25):
        wrong = az_user.call("PUT", path.replace("anaccount", name), _ACCOUNT)
        refused("AccountNameInvalid", wrong)
    for name, free in (("anaccount", False), ("taken", False), ("free", True), ("No", False)):
        ask = {"name": name, "type": "Microsoft.Storage/storageAccounts"}
        said = az_user.call("POST", "providers/Microsoft.Storage/checkNameAvailability", ask)
        assert said.json()["nameAvailable"] is free
    without: dict[str, Any] = {key: value for key, value in _ACCOUNT.items() if key != "sku"}
    answer = az_user.call("PUT", path.replace("anaccount", "free"), without)
    refused("InvalidRequestPropertyValue", answer)
    assert az_user.call("DELETE", path).status_code == 200
    assert az_user.call("DELETE", path).status_code == 204
    assert other


def test_a_container_that_was_deleted_keeps_its_name_for_a_while(
    az: SimAzure, az_user: User
) -> None:
    az.timing.container_gone = 30
    box = az_user.make_container(az_user.make_group())
    assert az_user.call("PUT", box, {}).status_code == 200
    refused("ContainerNameInvalid", az_user.call("PUT", f"{box}--x", {}))
    az_user.delete(box)
    refused("ContainerNotFound", az_user.call("GET", box))
    refused("ContainerBeingDeleted", az_user.call("PUT", box, {}))
    az.advance(31)
    assert az_user.call("PUT", box, {}).status_code == 201


# Identities and roles


def test_a_new_identity_is_known_to_roles_after_a_while(az: SimAzure, az_user: User) -> None:
    az.timing.principal_ready = 60
    group = az_user.make_group()
    made = az_user.make_identity(group)
    principal = made["properties"]["principalId"]
    path = f"{group}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
    body = _assignment(az_user, MACHINE_CONTRIBUTOR, principal)
    text = refused("PrincipalNotFound", az_user.call("PUT", path, body))
    assert "set the role assignment principalType property" in text
    body["properties"]["principalType"] = "User"
    refused("UnmatchedPrincipalType", az_user.call("PUT", path, body))
    body["properties"]["principalType"] = "ServicePrincipal"
    assert az_user.call("PUT", path, body).status_code == 201
    az_user.delete(path)
    del body["properties"]["principalType"]
    az.advance(61)
    assert az_user.call("PUT", path, body).status_code == 201
    nobody = _assignment(az_user, MACHINE_CONTRIBUTOR, str(uuid.uuid4()))
    refused("PrincipalNotFound", az_user.call("PUT", path, nobody))


def test_assignments_are_the_same_or_in_the_way(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    principal = az_user.make_identity(group)["properties"]["principalId"]
    other = az_user.make_identity(group, "another")["properties"]["principalId"]
    roles = f"{group}/providers/Microsoft.Authorization/roleAssignments"
    path = f"{roles}/{uuid.uuid4()}"
    body = _assignment(az_user, MACHINE_CONTRIBUTOR, principal)
    assert az_user.call("PUT", path, body).status_code == 201
    assert az_user.call("PUT", path, body).status_code == 200
    refused("RoleAssignmentExists", az_user.call("PUT", f"{roles}/{uuid.uuid4()}", body))
    changed = _assignment(az_user, MACHINE_CONTRIBUTOR, other)
    refused("RoleAssignmentUpdateNotPermitted", az_user.call("PUT", path, changed))
    refused("InvalidRoleAssignmentId", az_user.call("PUT", f"{roles}/a-name", body))
    unknown = _assignment(az_user, str(uuid.uuid4()), principal)
    answer = az_user.call("PUT", f"{roles}/{uuid.uuid4()}", unknown)
    refused("RoleDefinitionDoesNotExist", answer)
    nowhere = f"{group}x/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
    refused("ResourceGroupNotFound", az_user.call("PUT", nowhere, body))
    query = {"$filter": f"principalId eq '{principal}'"}
    assert len(az_user.get(roles, **query)["value"]) == 1
    assert az_user.call("DELETE", path).status_code == 200
    assert az_user.call("DELETE", path).status_code == 204


def test_assignments_outside_of_a_group_outlive_its_identity(az: SimAzure, az_user: User) -> None:
    """So whoever gives rights on something of the user's has to take them back."""
    group, mine = az_user.make_group(), az_user.make_group("mine")
    box = az_user.make_container(mine)
    principal = az_user.make_identity(group)["properties"]["principalId"]
    az_user.assign(box, BLOB_CONTRIBUTOR, principal)
    az_user.assign(group, MACHINE_CONTRIBUTOR, principal)
    az_user.delete(group)
    left = [line for line in az.inventory() if line.startswith("role assignment")]
    assert len(left) == 1
    assert left[0].endswith("/containers/box")


def test_roles_of_ones_own_stay_until_they_are_deleted(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    principal = az_user.make_identity(group)["properties"]["principalId"]
    path = f"{group}/providers/Microsoft.Authorization/roleDefinitions/{uuid.uuid4()}"
    content = {
        "roleName": "leaver",
        "permissions": [{"actions": ["Microsoft.Compute/virtualMachineScaleSets/delete/action"]}],
        "assignableScopes": [group],
    }
    made = az_user.call("PUT", path, {"properties": content})
    assert made.json()["properties"]["type"] == "CustomRole"
    az_user.assign(group, path.rpartition("/")[2], principal)
    refused("RoleDefinitionHasAssignments", az_user.call("DELETE", path))
    az_user.delete(group)
    assert az.inventory() == ["role leaver"]
    scope = f"/subscriptions/{az.subscription}/providers/Microsoft.Authorization/roleDefinitions"
    assert az_user.call("DELETE", f"{scope}/{path.rpartition('/')[2]}").status_code == 200
    [found] = az_user.get(scope, **{"$filter": "roleName eq 'Contributor'"})["value"]
    assert found["name"] == "b24988ac-6180-42a0-ab88-20f7382dd24c"


# Networks


def test_networks_take_a_while_and_are_in_use(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    az.timing.network = 60
    path = f"{group}/providers/Microsoft.Network/virtualNetworks/a-network"
    body: dict[str, Any] = {
        "location": "eastus",
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "inside", "properties": {"addressPrefix": "10.0.1.0/24"}}],
        },
    }
    answer = az_user.call("PUT", path, body)
    assert answer.status_code == 201
    assert answer.json()["properties"]["provisioningState"] == "Updating"
    assert "retry-after" in answer.headers
    status = answer.headers["azure-asyncoperation"]
    assert az_user.poll(status).json()["status"] == "InProgress"
    refused("AnotherOperationInProgress", az_user.call("PUT", path, body))
    az.advance(61)
    az_user.finish(answer)
    body["properties"]["subnets"][0]["properties"]["addressPrefix"] = "10.1.0.0/24"
    refused("NetcfgInvalidSubnet", az_user.call("PUT", path, body))
    subnet = f"{path}/subnets/inside"
    assert az_user.get(subnet)["properties"]["addressPrefix"] == "10.0.1.0/24"
    overlap = {"properties": {"addressPrefix": "10.0.1.128/25"}}
    wrong = az_user.call("PUT", f"{path}/subnets/second", overlap)
    refused("NetcfgSubnetRangesOverlap", wrong)
    az.timing.network = 0.0
    az_user.make_set(group, 0, subnet=subnet)
    refused("InUseSubnetCannotBeDeleted", az_user.call("DELETE", path))
    refused("InUseSubnetCannotBeDeleted", az_user.call("DELETE", subnet))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"priority": 99}, "SecurityRuleInvalidParameter"),
        ({"destinationPortRange": "ssh"}, "SecurityRuleInvalidParameter"),
        ({"sourceAddressPrefix": None}, "SecurityRuleInvalidParameter"),
        ({"sourceAddressPrefix": "everywhere"}, "SecurityRuleInvalidParameter"),
        ({"sourceAddressPrefix": "10.0.0.1/8"}, "SecurityRuleInvalidParameter"),
        ({"protocol": "SSH"}, "InvalidRequestContent"),
    ],
)
def test_rules_of_security_groups_are_checked(
    az_user: User, change: dict[str, Any], code: str
) -> None:
    rule = {
        "priority": 100,
        "direction": "Inbound",
        "access": "Allow",
        "protocol": "Tcp",
        "sourceAddressPrefix": "10.0.0.0/8",
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": "22",
    }
    path = f"{az_user.make_group()}/providers/Microsoft.Network/networkSecurityGroups/a-firewall"

    def body(*rules: dict[str, Any]) -> dict[str, Any]:
        named = [{"name": f"r{number}", "properties": r} for number, r in enumerate(rules)]
        return {"location": "eastus", "properties": {"securityRules": named}}

    refused(code, az_user.call("PUT", path, body({**rule, **change})))
    refused("SecurityRuleConflict", az_user.call("PUT", path, body(rule, rule)))
    az_user.put(path, body(rule))


def _assignment(user: User, role: str, principal: str) -> dict[str, Any]:
    roles = f"/subscriptions/{user.subscription}/providers/Microsoft.Authorization"
    definition = f"{roles}/roleDefinitions/{role}"
    return {"properties": {"roleDefinitionId": definition, "principalId": principal}}
