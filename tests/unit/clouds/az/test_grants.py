"""What the roles of a task's machines allow, as Azure would judge it."""

from __future__ import annotations

import uuid

import pytest

from sojourn.clouds.az.locations import Location
from sojourn.clouds.az.policy import Grant, on_scaler, on_store
from sojourn.clouds.vm.paths import READ
from sojourn.storage.layout import LAPTOPS_WRITE, MACHINES_WRITE
from tests.simcloud.az.conditions import Asked, parse
from tests.simcloud.az.roles import BUILT_IN

OWN = Location("eastus", "account", "task")
CONTAINED = Location("eastus", "account", "box", "mine", contained=True)
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
PLACES = [(OWN, ""), (CONTAINED, "mine/")]
CONTAINER = "/x/containers/y"


def may(place: Location, asked: Asked) -> bool:
    known = {role.id: role for role in BUILT_IN}
    return any(
        known[grant.role].allows(asked.action, data=True) and parse(grant.condition)(asked)
        for grant in on_store(CONTAINER, place)
    )


def may_do(place: Location, verb: str, path: str) -> bool:
    return may(place, Asked(f"{BLOBS}/{verb}", attributes={"path": path}))


def may_list(place: Location, prefix: str) -> bool:
    return may(place, Asked(f"{BLOBS}/read", "Blob.List", {"prefix": prefix}))


@pytest.mark.parametrize(("place", "inside"), PLACES)
def test_a_machine_reaches_its_own_store_but_the_laptops_part(place: Location, inside: str) -> None:
    assert may_list(place, f"{inside}logs/")
    for verb in ("read", "write", "delete", "add/action"):
        for name in MACHINES_WRITE:
            assert may_do(place, verb, f"{inside}{name}/1")
        assert not may_do(place, verb, f"{inside}laptop/seed")


@pytest.mark.parametrize(("place", "inside"), PLACES)
def test_what_a_laptop_acts_on_a_machine_can_only_read(place: Location, inside: str) -> None:
    for name in READ:
        path = f"{name}x" if name.endswith("/") else name
        assert may_do(place, "read", f"{inside}{path}")
    for name in LAPTOPS_WRITE:
        for path in (name, f"{name}/x"):
            assert not may_do(place, "write", f"{inside}{path}")
            assert not may_do(place, "delete", f"{inside}{path}")
    for path in ("boot/agent-x86_64-311.zip", "laptop/owner", "anything", "logs"):
        assert not may_do(place, "write", f"{inside}{path}")


def test_a_machine_does_not_reach_other_tasks_in_the_same_container() -> None:
    for path in ("other/task.json", "mine-too/task.json", "minetoo", "task.json", "logs/1"):
        for verb in ("read", "write", "delete"):
            assert not may_do(CONTAINED, verb, path)
    for prefix in ("", "other/", "mine-too/", "mine"):
        assert not may_list(CONTAINED, prefix)


def test_all_else_is_limited_to_its_own_scale_set() -> None:
    grants = on_scaler("/set", "/setting")
    assert {grant.scope for grant in grants} == {"/set", "/setting"}
    known = {role.id: role.name for role in BUILT_IN}
    assert [known[grant.role] for grant in grants] == [
        *("Virtual Machine Contributor", "Tag Contributor", "Contributor")
    ]


def test_names_of_assignments_are_the_same_each_time_and_never_of_two() -> None:
    grants = [*on_store(CONTAINER, OWN), *on_scaler("/set", "/setting")]
    names = [grant.name("task") for grant in grants]
    assert len(set(names)) == len(grants)
    assert names == [grant.name("task") for grant in grants]
    assert Grant("/A", "r").name("t") == Grant("/a", "r").name("t")  # Azure ignores case
    assert names[0] != grants[0].name("other")
    assert all(str(uuid.UUID(name)) == name for name in names)
