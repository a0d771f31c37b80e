"""An identity of the user's that lacks what machines need is refused before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from tests.simcloud.az import roles
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User
from tests.support.warned import warnings_of

_MACHINES = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"  # Virtual Machine Contributor
_DOCUMENTED = (roles.BLOB_CONTRIBUTOR, _MACHINES, roles.CONTRIBUTOR)


class Given:
    """An identity of the user's."""

    def __init__(self, user: User) -> None:
        self._user = user
        self.group = user.make_group()
        made = user.make_identity(self.group)
        self.id = str(made["id"])
        self._principal = str(made["properties"]["principalId"])

    def may(self, *given: str, scope: str = "") -> None:
        for role in given:
            whole = f"/subscriptions/{self._user.subscription}"
            self._user.assign(scope or whole, role, self._principal)

    def look(self, **more: Any) -> list[str]:
        task = Task("#!/bin/sh", cloud="az", permission_set=self.id, **more)
        return [each for each in warnings_of(AzureCloud(Account()), task) if self.id in each]


@pytest.fixture
def given(laptop: SimAzure, user: User) -> Given:
    return Given(user)


def test_the_documented_roles_are_enough(given: Given) -> None:
    given.may(*_DOCUMENTED)
    assert given.look() == []
    assert given.look(name="mine") == []


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        (_DOCUMENTED[:2], "Microsoft.Insights/autoscaleSettings/read, Microsoft.Insights/"),
        ((roles.BLOB_CONTRIBUTOR,), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/"),
        (_DOCUMENTED[1:], "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_made(
    given: Given, laptop: SimAzure, held: tuple[str, ...], missing: str
) -> None:
    given.may(*held)
    with pytest.raises(InvalidInput, match=f"is not allowed {missing}") as caught:
        sojourn.create(Task("#!/bin/sh", cloud="az", permission_set=given.id))
    assert caught.value.path == "permission_set"
    assert not any("tpi-" in line for line in laptop.inventory())


def test_roles_elsewhere_do_not_count(given: Given) -> None:
    given.may(*_DOCUMENTED, scope=given.group)
    with pytest.raises(InvalidInput, match="virtualMachines/delete"):
        given.look()


def test_a_role_at_a_container_of_the_users_counts_for_its_blobs(given: Given, user: User) -> None:
    container = user.make_container(given.group)
    given.may(*_DOCUMENTED[1:])
    stored = Storage(container="box", container_opts={"account": "anaccount"})
    with pytest.raises(InvalidInput, match="blobs/read"):
        given.look(storage=stored)
    given.may(roles.BLOB_CONTRIBUTOR, scope=container)
    assert given.look(storage=stored) == []


@pytest.mark.parametrize(
    "action",
    [
        "Microsoft.Authorization/roleAssignments/read",
        "Microsoft.Authorization/roleDefinitions/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/read",
    ],
)
def test_who_may_not_ask_is_told_once_and_goes_on(
    given: Given, laptop: SimAzure, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    given.may(*_DOCUMENTED)
    for name, value in laptop.user({"actions": ["*"], "notActions": [action]}, "less").items():
        monkeypatch.setenv(name, value)
    [note] = given.look()
    assert "Could not check what" in note
    assert "you lack Microsoft." in note
    assert "virtualMachines/delete, " in note
    assert "containers/blobs/write, the first machine" in note
