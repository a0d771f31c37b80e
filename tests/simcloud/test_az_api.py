"""The simulated Azure: who may call what, what requests must be like, and calls that fail."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import DefaultAzureCredential

from tests.simcloud.az import rights, shapes
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.calls import Call
from tests.simcloud.az_user import RefusedError, User, refused, scale_set
from tests.simcloud.common import gate
from tests.support.waiting import patience

_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"


# Who calls


def test_users_need_their_secret_and_their_tenant(az: SimAzure) -> None:
    nobody = "11111111-1111-1111-1111-111111111111"
    for change, text in (
        ({"AZURE_CLIENT_SECRET": "wrong"}, "AADSTS7000215"),
        ({"AZURE_CLIENT_ID": nobody}, "AADSTS700016"),
        ({"AZURE_TENANT_ID": nobody}, "double check your tenant"),  # as msal says it
    ):
        user = User({**az.environment(), **change})
        with pytest.raises(ClientAuthenticationError, match=text):
            user.get("resourceGroups")
        user.close()


def test_a_ci_system_needs_no_secret(az: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_CLIENT_SECRET", raising=False)
    environment = az.federate(az.environment())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    scope = "https://management.azure.com/.default"
    with DefaultAzureCredential() as credential:
        assert credential.get_token(scope).token
    Path(environment["AZURE_FEDERATED_TOKEN_FILE"]).write_text("forged")
    with DefaultAzureCredential() as credential, pytest.raises(ClientAuthenticationError):
        credential.get_token(scope)


def test_calls_need_a_token_for_resource_manager_that_has_not_run_out(
    az: SimAzure, az_user: User
) -> None:
    url = f"https://management.azure.com/subscriptions/{az.subscription}?api-version=2022-12-01"
    storage = az_user.credential.get_token("https://storage.azure.com/.default").token
    good = az_user.credential.get_token("https://management.azure.com/.default").token
    assert az_user.http.get(url, headers=_bearer(good)).status_code == 200
    for headers, code in (
        ({}, "AuthenticationFailed"),
        (_bearer("made.up.token"), "InvalidAuthenticationToken"),
        (_bearer(storage), "InvalidAuthenticationTokenAudience"),
    ):
        answer = az_user.http.get(url, headers=headers)
        assert answer.status_code == 401
        refused(code, answer)
    az.expire_tokens()
    refused("ExpiredAuthenticationToken", az_user.http.get(url, headers=_bearer(good)))


def test_a_user_may_do_what_its_role_says_and_no_more(az: SimAzure, az_user: User) -> None:
    az_user.make_group("mine")
    az_user.make_group("theirs")
    scope = f"/subscriptions/{az.subscription}/resourceGroups/mine"
    role = {
        "actions": ["*/read", f"{_GROUPS}/*"],
        "notActions": [f"{_GROUPS}/delete"],
    }
    other = User(az.user(role, scope=scope))
    assert other.get(scope)["name"] == "mine"
    assert [each["name"] for each in other.get("resourceGroups")["value"]] == ["mine"]
    theirs = other.call("GET", "resourceGroups/theirs")
    text = refused("AuthorizationFailed", theirs)
    assert f"perform action '{_GROUPS}/read' over scope" in text
    assert theirs.status_code == 403
    refused("AuthorizationFailed", other.call("DELETE", scope))
    # What is not there is not told from what is not allowed
    refused("AuthorizationFailed", other.call("GET", "resourceGroups/missing"))
    other.put(scope, {"location": "eastus", "tags": {"a": "b"}})
    account = f"{scope}/providers/Microsoft.Storage/storageAccounts/another"
    body = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    text = refused("AuthorizationFailed", other.call("PUT", account, body))
    assert "Microsoft.Storage/storageAccounts/write" in text
    other.close()


def test_what_a_scale_set_uses_has_to_be_allowed_as_well(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    subnet, identity = az_user.make_network(group), az_user.make_identity(group)["id"]
    path = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/a-set"
    compute = "Microsoft.Compute/virtualMachineScaleSets/*"
    join = "Microsoft.Network/virtualNetworks/subnets/join/action"
    assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
    for actions, missing in (([compute, join], assign), ([compute, assign], join)):
        other = User(az.user({"actions": actions}))
        answer = other.call("PUT", path, scale_set(subnet, 0, identity=identity))
        assert missing in refused("LinkedAuthorizationFailed", answer)
        other.close()
    other = User(az.user({"actions": [compute, join, assign]}))
    other.put(path, scale_set(subnet, 0, identity=identity))
    other.close()


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("virtualMachineScaleSets.update", "Microsoft.Compute/virtualMachineScaleSets/write"),
        (
            "virtualMachineScaleSets.deleteInstances",
            "Microsoft.Compute/virtualMachineScaleSets/delete/action",
        ),
        (
            "virtualMachineScaleSetVMs.list",
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        ),
        ("storageAccounts.listKeys", "Microsoft.Storage/storageAccounts/listKeys/action"),
        (
            "blobContainers.create",
            "Microsoft.Storage/storageAccounts/blobServices/containers/write",
        ),
        ("roleAssignments.create", "Microsoft.Authorization/roleAssignments/write"),
        ("permissions.listForResource", "Microsoft.Authorization/permissions/read"),
        ("autoscaleSettings.delete", "Microsoft.Insights/autoscalesettings/delete"),
        ("resourceGroups.delete", f"{_GROUPS}/delete"),
        ("resourceSkus.list", "Microsoft.Compute/skus/read"),
    ],
)
def test_actions_are_those_of_the_documentation(name: str, action: str) -> None:
    operation = shapes.model()["operations"][name]
    path = operation["path"].replace("{", "").replace("}", "")
    call = Call(name, path, operation["method"], operation, {"scope": "scope"})
    assert [each.action for each in rights.needed(call, {})] == [action]


# What requests must be like


def test_the_model_is_of_the_versions_that_it_says() -> None:
    model = shapes.model()
    assert model["sources"]["compute"]["version"] == "22.4.0"
    assert all(each["license"] == "MIT" for each in model["sources"].values())
    assert all(each["version"] for each in model["operations"].values())
    used = {each for operation in model["operations"].values() for each in _types(operation)}
    assert used <= model["types"].keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "Could not find member 'colour'"),
        ({"managedBy": 1}, "Error converting value 1 to type 'string'"),
        ({"id": "/subscriptions/x"}, "'id' is read-only"),
        ({"location": None}, "Required property 'location' not found"),
        ({"tags": {"a": 1}}, "Error converting value 1"),
    ],
)
def test_bodies_are_checked(az_user: User, change: dict[str, Any], said: str) -> None:
    answer = az_user.call("PUT", "resourceGroups/a-group", {"location": "eastus", **change})
    assert said in refused("InvalidRequestContent", answer)


def test_values_that_are_not_known_are_refused(az_user: User) -> None:
    group = az_user.make_group()
    body = scale_set(az_user.make_network(group), 0)
    body["properties"]["virtualMachineProfile"]["priority"] = "Cheap"
    path = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/a-set"
    said = refused("InvalidRequestContent", az_user.call("PUT", path, body))
    assert "The value 'Cheap' is not one of 'Regular', 'Low', 'Spot'" in said


def test_versions_and_queries_are_checked(az_user: User) -> None:
    wrong = az_user.call("GET", "resourceGroups", version="2019-01-01")
    refused("InvalidApiVersionParameter", wrong)
    token = az_user.credential.get_token("https://management.azure.com/.default").token
    url = f"https://management.azure.com/subscriptions/{az_user.subscription}/resourceGroups"
    refused("MissingApiVersionParameter", az_user.http.get(url, headers=_bearer(token)))
    refused("InvalidQueryParameterValue", az_user.call("GET", "resourceGroups", colour="red"))
    refused("InvalidFilterInQueryString", az_user.call("GET", "resourceGroups", **_filter("x")))
    answer = az_user.call("GET", "/subscriptions/another/resourceGroups")
    refused("SubscriptionNotFound", answer)


def test_names_and_tags_are_checked(az_user: User) -> None:
    for name in ("ends.", "a b", "x" * 91):
        answer = az_user.call("PUT", f"resourceGroups/{name}", {"location": "eastus"})
        refused("InvalidResourceGroup", answer)
    for tags, code in (
        ({f"t{number}": "" for number in range(51)}, "InvalidTagCount"),
        ({"a/b": ""}, "InvalidTagNameCharacters"),
        ({"microsoft:x": ""}, "ReservedTagName"),
        ({"a": "x" * 257}, "TagValueTooLong"),
        ({"a": "", "A": ""}, "DuplicateTagName"),
    ):
        body = {"location": "eastus", "tags": tags}
        refused(code, az_user.call("PUT", "resourceGroups/a-group", body))
    answer = az_user.call("PUT", "resourceGroups/a-group", {"location": "the moon"})
    refused("LocationNotAvailableForResourceGroup", answer)


def test_what_the_simulation_does_not_know_fails_the_test() -> None:
    def cook() -> None:
        with SimAzure() as az:
            user = User(az.environment())
            user.call("GET", "providers/Microsoft.Cooking/pots")
            user.close()

    with pytest.raises(AssertionError, match="is not known here"):
        cook()


# Calls that fail


def test_the_nth_call_fails_before_or_after_its_effect(az: SimAzure, az_user: User) -> None:
    az.fail("resourceGroups.createOrUpdate", nth=2)
    az_user.make_group("one")
    body = {"location": "eastus"}
    assert az_user.call("PUT", "resourceGroups/two", body).status_code == 500
    az.fail("resourceGroups.createOrUpdate", after=True, code="Oops", status=503)
    refused("Oops", az_user.call("PUT", "resourceGroups/three", body))
    assert az.inventory() == [
        "resourceGroups /resourceGroups/one",
        "resourceGroups /resourceGroups/three",
    ]
    az.fail("resourceGroups.*", cut=True)
    with pytest.raises(httpx.RemoteProtocolError):
        az_user.get("resourceGroups")
    az.fail("*", who="somebody else")
    az_user.get("resourceGroups")
    az.heal()


def test_calls_are_throttled_with_a_time_to_wait(az: SimAzure, az_user: User) -> None:
    az.throttle("resourceGroups.list", times=2)
    for _ in range(2):
        answer = az_user.call("GET", "resourceGroups")
        refused("SubscriptionRequestsThrottled", answer)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    az_user.get("resourceGroups")
    assert [call.error for call in az.calls if call.name == "resourceGroups.list"] == [
        "SubscriptionRequestsThrottled",
        "SubscriptionRequestsThrottled",
        "",
    ]


def test_calls_are_watched_delayed_and_not_in_each_others_way(
    az: SimAzure, az_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    az_user.make_group()
    az.watch(lambda call: seen.append(call.name))
    az.delay(0.2)
    start = time.monotonic()
    az_user.get("resourceGroups")
    assert time.monotonic() - start >= 0.2
    at_once = threading.Barrier(4)
    monkeypatch.setattr(gate, "sleep", lambda _: at_once.wait(patience(30)))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: az_user.get("resourceGroups"), range(4)))
    assert seen == ["resourceGroups.list"] * 5


def test_an_error_of_an_operation_is_an_exception_of_the_helper(
    az: SimAzure, az_user: User
) -> None:
    az.fail("resourceGroups.get", code="Oops")
    az_user.make_group()
    with pytest.raises(RefusedError, match="Oops"):
        az_user.get("resourceGroups/a-group")


def _types(operation: dict[str, Any]) -> list[str]:
    named = [operation.get("body"), *operation["answers"].values()]
    return [each for each in named if each]


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _filter(text: str) -> dict[str, str]:
    return {"$filter": text}
