"""Conditions of role assignments in the simulated Azure: strict, and of effect on data alone."""

from __future__ import annotations

import obstore
import pytest
from obstore.exceptions import PermissionDeniedError
from obstore.store import AzureStore

from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.conditions import Asked, parse
from tests.simcloud.az.wire import ArmError
from tests.simcloud.az_user import BLOB_CONTRIBUTOR, MACHINE_CONTRIBUTOR, User, refused

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_PATH = f"@Resource[{_BLOBS}:path]"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (f"{_PATH} StringStartsWith 'a/'", True),
        (f"{_PATH} StringNotStartsWith 'a/'", False),
        (f"{_PATH} StringEquals 'a/b'", True),
        (f"{_PATH} StringNotEquals 'a/b'", False),
        (f"!({_PATH} StringEquals 'a/b')", False),
        (f"NOT {_PATH} StringEquals 'c' AND {_PATH} StringStartsWith 'a'", True),
        (f"{_PATH} StringEquals 'c' OR ({_PATH} StringEquals 'd' OR ActionMatches{{'*'}})", True),
        (f"ActionMatches{{'{_BLOBS}/read'}} AND SubOperationMatches{{'Blob.List'}}", False),
        (f"@Request[{_BLOBS}:prefix] StringNotEquals 'x'", False),  # there is none
    ],
)
def test_what_holds(text: str, holds: bool) -> None:
    assert parse(text)(Asked(f"{_BLOBS}/read", attributes={"path": "a/b"})) is holds


@pytest.mark.parametrize(
    "text",
    ["", "(", f"{_PATH}", f"{_PATH} StringEquals 'a' x", "ActionMatches{'a'} AND", "a" * 9000],
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ArmError):
        parse(text)


def test_what_is_not_known_is_no_condition_here() -> None:
    for text in ("SubOperationMatches{'Blob.Write'}", f"{_PATH} StringLike 'a'"):
        with pytest.raises(NotImplementedError):
            parse(text)


def test_an_assignment_with_a_condition(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    container = az_user.make_container(group)
    other = az.user({"actions": ["x"]}, "other")
    roles = f"/subscriptions/{az.subscription}/providers/Microsoft.Authorization"
    path = (
        f"{container}/providers/Microsoft.Authorization/roleAssignments/"
        "11111111-1111-1111-1111-111111111111"
    )
    properties = {
        "roleDefinitionId": f"{roles}/roleDefinitions/{BLOB_CONTRIBUTOR}",
        "principalId": az.principal(other["AZURE_CLIENT_ID"]),
        "principalType": "ServicePrincipal",
        "condition": f"{_PATH} StringStartsWith 'mine/'",
    }
    wrong = az_user.call("PUT", path, {"properties": properties})
    refused("InvalidConditionVersion", wrong)
    properties["conditionVersion"] = "2.0"
    on_machines = {
        **properties,
        "roleDefinitionId": f"{roles}/roleDefinitions/{MACHINE_CONTRIBUTOR}",
    }
    refused("ConditionNotSupported", az_user.call("PUT", path, {"properties": on_machines}))
    made = az_user.put(path, {"properties": properties})
    assert made["properties"]["condition"] == properties["condition"]
    user = User(other)
    token = user.credential.get_token("https://storage.azure.com/.default").token
    store = AzureStore("box", account_name="anaccount", bearer_token=token)
    obstore.put(store, "mine/a", b"text")
    assert bytes(obstore.get(store, "mine/a").bytes()) == b"text"
    for key in ("a", "yours/a"):
        with pytest.raises(PermissionDeniedError):
            obstore.put(store, key, b"")
    user.close()


def test_tags_are_merged_replaced_and_deleted(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    made = az_user.make_set(group, 0)["id"]
    path = f"{made}/providers/Microsoft.Resources/tags/default"

    def change(operation: str, **tags: str) -> object:
        body = {"operation": operation, "properties": {"tags": tags}}
        answer = az_user.call("PATCH", path, body)
        assert answer.status_code == 200, answer.text
        return az_user.get(made)["tags"]

    assert change("Merge", a="1", b="2") == {"a": "1", "b": "2"}
    assert change("Merge", A="3") == {"A": "3", "b": "2"}
    az_user.finish(az_user.call("PATCH", made, {"sku": {"capacity": 0}}))
    assert az_user.get(made)["tags"] == {"A": "3", "b": "2"}
    assert change("Delete", b="") == {"A": "3"}
    assert change("Replace", c="4") == {"c": "4"}
    wrong = az_user.call("PATCH", path, {"operation": "Other", "properties": {"tags": {}}})
    refused("InvalidRequestContent", wrong)
    less = User(az.user({"actions": ["Microsoft.Compute/virtualMachineScaleSets/*"]}, "less"))
    body = {"operation": "Merge", "properties": {"tags": {"x": "y"}}}
    refused("AuthorizationFailed", less.call("PATCH", path, body))
    less.close()
