"""Accounts, policies, conditions and permissions of a simulated Google Cloud project."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simcloud.gcp import cel
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.project import PROJECT
from tests.simcloud.gcp_user import SCOPE, ZONE, GoogleError, User, refused

_ACCOUNTS = f"v1/projects/{PROJECT}/serviceAccounts"
_TASK = {
    "compute.disks.create",
    "compute.globalOperations.get",
    "compute.instanceGroupManagers.create",
    "compute.instanceGroupManagers.delete",
    "compute.instanceGroupManagers.get",
    "compute.instanceGroups.create",
    "compute.instanceGroups.delete",
    "compute.instanceTemplates.create",
    "compute.instanceTemplates.delete",
    "compute.instanceTemplates.useReadOnly",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.setLabels",
    "compute.instances.setServiceAccount",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
    "compute.zoneOperations.get",
    "iam.serviceAccounts.actAs",
}


def _run(user: User, email: str) -> None:
    """All that a task needs, made and removed."""
    account: dict[str, Any] = {"serviceAccounts": [{"email": email, "scopes": [SCOPE]}]}
    user.make_template(labels={"task": "one"}, **account)
    user.make_group(1)
    user.group()
    user.remove_all()


def _clean_up(gcp: SimGCP, googler: User) -> None:
    gcp.settle()
    left = " ".join(gcp.inventory())
    if "group a-group" in left:
        googler.delete(f"zones/{ZONE}/instanceGroupManagers/a-group")
    if "template a-template" in left:
        googler.delete("global/instanceTemplates/a-template")


def test_the_life_of_an_account(gcp: SimGCP, googler: User) -> None:
    for wrong in ("short", "x" * 31, "9abcdef", "Abcdefg", "abcdef-"):
        refused(400, "INVALID_ARGUMENT", googler.make_account, wrong)
    email = googler.make_account("sixsix")
    assert email == f"sixsix@{PROJECT}.iam.gserviceaccount.com"
    refused(409, "ALREADY_EXISTS", googler.make_account, "sixsix")
    found = googler.call("GET", "iam", f"{_ACCOUNTS}/{email}")
    assert found["displayName"] == "A machine"
    by_number = googler.call("GET", "iam", f"v1/projects/-/serviceAccounts/{found['uniqueId']}")
    assert by_number == found
    assert googler.call("GET", "iam", _ACCOUNTS)["accounts"] == [found]
    assert gcp.inventory() == [f"service account {email}"]
    googler.remove_account(email)
    refused(404, "NOT_FOUND", googler.remove_account, email)
    refused(404, "NOT_FOUND", googler.call, "GET", "iam", f"{_ACCOUNTS}/{email}")
    assert gcp.inventory() == []


def test_a_hundred_accounts_are_enough(googler: User) -> None:
    for number in range(100):
        googler.make_account(f"account-{number}")
    message = refused(429, "RESOURCE_EXHAUSTED", googler.make_account, "one-more")
    assert message == "Maximum number of service accounts on project reached."
    page = googler.call("GET", "iam", _ACCOUNTS, pageSize=60)
    assert (len(page["accounts"]), page["nextPageToken"]) == (60, "60")


def test_policies_learn_of_a_new_account_after_a_while(gcp: SimGCP, googler: User) -> None:
    gcp.timing.account_ready = 60
    email = googler.make_account()
    bind = ("roles/storage.objectViewer", f"serviceAccount:{email}")
    message = refused(400, "INVALID_ARGUMENT", googler.bind, *bind)
    assert message == f"Service account {email} does not exist."
    gcp.advance(60)
    googler.bind(*bind)


def test_deleted_accounts_stay_in_policies(gcp: SimGCP, googler: User) -> None:
    email = googler.make_account()
    googler.bind("roles/storage.objectViewer", f"serviceAccount:{email}")
    googler.remove_account(email)
    [line] = gcp.inventory()
    assert line.startswith(
        f"binding roles/storage.objectViewer of deleted:serviceAccount:{email}?uid="
    )
    googler.unbind(email)
    assert gcp.inventory() == []


def test_who_comes_too_late_reads_the_policy_again(googler: User) -> None:
    policy = googler.policy()
    googler.set_policy(policy)
    message = refused(409, "ABORTED", googler.set_policy, policy)
    assert "There were concurrent policy changes" in message


def test_versions_of_policies(googler: User) -> None:
    email = googler.make_account()
    condition = "resource.name.startsWith('projects/_/buckets/b/')"
    googler.bind("roles/storage.objectViewer", f"serviceAccount:{email}", condition)
    policy = googler.policy()
    assert policy["version"] == 3
    assert policy["bindings"][-1]["condition"]["expression"] == condition
    path = f"v1/projects/{PROJECT}:getIamPolicy"
    old = googler.call("POST", "cloudresourcemanager", path, {})
    assert old["version"] == 1
    assert "_withcond_" in old["bindings"][-1]["role"]
    refused(400, "INVALID_ARGUMENT", googler.set_policy, old)
    refused(400, "INVALID_ARGUMENT", googler.set_policy, {**policy, "version": 1})
    for change in (
        {"role": "roles/unheard.of", "members": []},
        {"role": "roles/owner", "members": ["somebody@example.com"]},
        {"role": "roles/owner", "members": [], "condition": {"expression": "true =="}},
        {"role": "roles/owner", "members": [], "condition": {"title": "x", "expression": "a.b"}},
    ):
        bindings = [*policy["bindings"], change]
        wrong = {**policy, "bindings": bindings}
        refused(400, "INVALID_ARGUMENT", googler.set_policy, wrong)
    v3 = f"v3/projects/{PROJECT}:getIamPolicy"
    body = {"options": {"requestedPolicyVersion": 3}}
    assert googler.call("POST", "cloudresourcemanager", v3, body) == policy


def test_a_policy_takes_effect_after_a_while(gcp: SimGCP, googler: User) -> None:
    environment = gcp.user([])
    user = User(environment)
    refused(403, "forbidden", user.get, "zones")
    gcp.timing.policy_ready = 60
    googler.bind("roles/compute.viewer", "serviceAccount:user-1@laptops.iam.gserviceaccount.com")
    refused(403, "forbidden", user.get, "zones")
    gcp.advance(60)
    user.get("zones")
    user.close()


def test_the_permissions_of_a_task_are_enough_and_all_are_needed(
    gcp: SimGCP, googler: User
) -> None:
    email = googler.make_account()
    able = User(gcp.user(_TASK))
    _run(able, email)
    able.close()
    for permission in sorted(_TASK):
        user = User(gcp.user(_TASK - {permission}))
        with pytest.raises(GoogleError) as caught:
            _run(user, email)
        said = str(caught.value)
        missing = "iam.serviceAccountUser" if permission.endswith("actAs") else permission
        assert missing in said
        user.close()
        _clean_up(gcp, googler)


def test_messages_about_permissions(gcp: SimGCP) -> None:
    user = User(gcp.user(["resourcemanager.projects.get"]))
    path = f"projects/{PROJECT}/zones/{ZONE}/instances/x"
    message = refused(403, "forbidden", user.get, f"zones/{ZONE}/instances/x")
    assert message == f"Required 'compute.instances.get' permission for '{path}'"
    with pytest.raises(GoogleError) as caught:
        user.make_account()
    [detail] = caught.value.error["details"]
    assert detail["reason"] == "IAM_PERMISSION_DENIED"
    assert detail["metadata"]["permission"] == "iam.serviceAccounts.create"
    message = refused(403, "forbidden", user.make_bucket)
    assert "does not have storage.buckets.create access" in message
    body = {"permissions": ["resourcemanager.projects.get", "compute.instances.get"]}
    test = f"v1/projects/{PROJECT}:testIamPermissions"
    held = user.call("POST", "cloudresourcemanager", test, body)
    assert held == {"permissions": ["resourcemanager.projects.get"]}
    user.close()


@pytest.mark.parametrize("seen", [True, False])
def test_a_condition_on_the_name_of_a_group(gcp: SimGCP, googler: User, seen: bool) -> None:
    """Google does not document that conditions see it; see `groups_have_names`."""
    gcp.project.groups_have_names = seen
    googler.make_template()
    googler.make_group(1)
    googler.make_group(1, name="other")
    path = f"projects/{PROJECT}/zones/{ZONE}/instanceGroupManagers/a-group"
    permissions = ["compute.instanceGroupManagers.update", "compute.zoneOperations.get"]
    only = f"resource.name == '{path}' || resource.name.startsWith('{path}')"
    user = User(gcp.user(permissions, condition=only))
    if seen:
        user.begin(f"zones/{ZONE}/instanceGroupManagers/a-group/resize", size=0)
    else:
        refused(403, "forbidden", user.resize, 0)
    refused(403, "forbidden", user.resize, 0, "other")
    user.close()


def test_conditions_see_names_of_instances(gcp: SimGCP, googler: User) -> None:
    googler.make_template()
    googler.make_group(1)
    gcp.wait(lambda: gcp.instances())
    name = gcp.instances()[0].name
    prefix = f"projects/{PROJECT}/zones/{ZONE}/instances/machine-"
    condition = (
        f"resource.type == 'compute.googleapis.com/Instance' && "
        f"resource.name.startsWith('{prefix}')"
    )
    user = User(gcp.user(["compute.instances.get"], condition=condition))
    user.get(f"zones/{ZONE}/instances/{name}")
    refused(403, "forbidden", user.get, f"zones/{ZONE}/instances/other")
    user.close()


def test_an_account_has_a_policy_of_its_own(gcp: SimGCP, googler: User) -> None:
    email = googler.make_account()
    user = User(gcp.user(_TASK - {"iam.serviceAccounts.actAs"}))
    account: dict[str, Any] = {"serviceAccounts": [{"email": email, "scopes": [SCOPE]}]}
    message = refused(403, "forbidden", user.make_template, **account)
    assert email in message
    member = "serviceAccount:user-1@laptops.iam.gserviceaccount.com"
    binding = {"role": "roles/iam.serviceAccountUser", "members": [member]}
    path = f"{_ACCOUNTS}/{email}:setIamPolicy"
    googler.call("POST", "iam", path, {"policy": {"bindings": [binding]}})
    user.make_template(**account)
    user.close()


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("resource.name == 'projects/p/zones/z/instances/i'", True),
        ('resource.name != "x"', True),
        ("resource.name.startsWith('projects/p/') && resource.name.endsWith('/i')", True),
        ("!resource.name.startsWith('projects/p/')", False),
        ("!(resource.type == 'x' || resource.service == 'compute.googleapis.com')", False),
        ("resource.name.extract('/instances/{name}') == 'i'", True),
        ("resource.name.extract('zones/{zone}/') == 'z'", True),
        ("resource.name.extract('/disks/{name}') == ''", True),
        ("resource.type == 'a' || resource.type == 'b' && resource.type == 'c'", False),
        ("api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('a')", False),
    ],
)
def test_conditions(expression: str, holds: bool) -> None:
    attributes = {
        "resource.name": "projects/p/zones/z/instances/i",
        "resource.type": "compute.googleapis.com/Instance",
        "resource.service": "compute.googleapis.com",
    }
    assert cel.holds(expression, attributes) is holds


@given(st.text(alphabet="resource.name=!&|()'\"ab ", max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with suppress(cel.ConditionError):
        assert cel.holds(text, {}) in (True, False)
