"""What the account of a task's machines may do, as Google would judge it."""

from __future__ import annotations

import pytest

from sojourn.clouds.gcp.locations import Location
from sojourn.clouds.gcp.policy import on_bucket, on_group
from sojourn.clouds.vm.paths import LISTED, OWNER, READ, SEED
from sojourn.storage.layout import LAPTOPS_WRITE, MACHINES_WRITE
from tests.simcloud.common.clock import Clock
from tests.simcloud.gcp.policies import Policies, Policy, Resource
from tests.simcloud.gcp.roles import Roles
from tests.simcloud.gcp.timing import Timing
from tests.unit.clouds.gcp.faults.laptop import ID

OWN = Location("us-west1-b", str(ID))
CONTAINED = Location("us-west1-b", "shared", "mine", contained=True)
MACHINE = "serviceAccount:machine@p.iam.gserviceaccount.com"
places = pytest.mark.parametrize(("place", "inside"), [(OWN, ""), (CONTAINED, "mine/")])


def _may(place: Location, permission: str, resource: Resource) -> bool:
    policies = Policies(Roles(), Clock(), Timing())
    group = on_group("p", "us-west1-b", str(ID), MACHINE)
    policies.project.write(group, 3, 0.0)
    bucket = Policy()
    bucket.write(on_bucket(place, MACHINE), 3, 0.0)
    own = resource.name.startswith(f"projects/_/buckets/{place.bucket}")
    judged = Resource(
        resource.name, resource.type, (bucket,) if own else (), list_prefix=resource.list_prefix
    )
    return policies.may(MACHINE, permission, judged)


def _object(place: Location, path: str) -> Resource:
    name = f"projects/_/buckets/{place.bucket}/objects/{path}"
    return Resource(name, "storage.googleapis.com/Object")


def _bucket(place: Location, prefix: str = "") -> Resource:
    name = f"projects/_/buckets/{place.bucket}"
    return Resource(name, "storage.googleapis.com/Bucket", list_prefix=prefix)


def _group(name: str, zone: str = "us-west1-b") -> Resource:
    path = f"projects/p/zones/{zone}/instanceGroupManagers/{name}"
    return Resource(path, "compute.googleapis.com/")


@places
def test_a_machine_reaches_its_own_store_but_the_laptops_part(place: Location, inside: str) -> None:
    assert _may(place, "storage.objects.list", _bucket(place, f"{inside}logs/"))
    for name in MACHINES_WRITE:
        for verb in ("get", "create", "delete"):
            assert _may(place, f"storage.objects.{verb}", _object(place, f"{inside}{name}/1"))
    for path in (SEED, OWNER):
        for verb in ("get", "create", "delete"):
            assert not _may(place, f"storage.objects.{verb}", _object(place, f"{inside}{path}"))
    for verb in ("delete", "get", "update", "getIamPolicy", "setIamPolicy"):
        assert not _may(place, f"storage.buckets.{verb}", _bucket(place))


@places
def test_what_a_laptop_acts_on_a_machine_can_only_read(place: Location, inside: str) -> None:
    for name in READ:
        path = f"{name}x" if name.endswith("/") else name
        assert _may(place, "storage.objects.get", _object(place, f"{inside}{path}"))
    for name in LAPTOPS_WRITE:
        for path in (name, f"{name}/x"):
            for verb in ("create", "delete", "update"):
                assert not _may(place, f"storage.objects.{verb}", _object(place, f"{inside}{path}"))
    for path in ("boot/agent-x86_64-311.zip", "anything", *(f"{n}x/1" for n in MACHINES_WRITE)):
        assert not _may(place, "storage.objects.create", _object(place, f"{inside}{path}"))


def test_a_machine_does_not_reach_other_tasks_in_the_same_bucket() -> None:
    for path in ("other/task.json", "mine-too/task.json", "minetoo", "task.json", "logs/1"):
        for verb in ("get", "create", "delete"):
            assert not _may(CONTAINED, f"storage.objects.{verb}", _object(CONTAINED, path))
    for prefix in ("", "other/", "mine-too/", "mine"):
        assert not _may(CONTAINED, "storage.objects.list", _bucket(CONTAINED, prefix))


@pytest.mark.parametrize("folder", ["", "mine"])
def test_a_machine_does_not_reach_tasks_below_its_own_folder(folder: str) -> None:
    place = Location("us-west1-b", "shared", folder, contained=True)
    inside = f"{folder}/" if folder else ""
    for path in ("other/environment.json", "tpi-x/laptop/seed", "a/logs/1", "task.jsonx"):
        for verb in ("get", "create", "delete"):
            assert not _may(place, f"storage.objects.{verb}", _object(place, f"{inside}{path}"))
    for prefix in (inside, f"{inside}other/", f"{inside}log"):
        assert not _may(place, "storage.objects.list", _bucket(place, prefix))
    for path in ("task.json", "workdir/x", "boot/agent.zip", "logs/1"):
        assert _may(place, "storage.objects.get", _object(place, f"{inside}{path}"))
    for name in LISTED:
        assert _may(place, "storage.objects.list", _bucket(place, f"{inside}{name}"))


def test_conditions_are_short_enough_for_google() -> None:
    for place in (OWN, CONTAINED):
        for binding in on_bucket(place, MACHINE):
            expression = str(binding["condition"]["expression"])
            assert sum(map(expression.count, ("&&", "||", "!"))) <= 12


def test_a_machine_does_not_reach_another_bucket() -> None:
    other = Location("us-west1-b", "another")
    for verb in ("get", "create", "delete"):
        assert not _may(OWN, f"storage.objects.{verb}", _object(other, "logs/1"))


def test_a_machine_acts_on_its_own_group_and_on_nothing_else() -> None:
    for permission in ("get", "update"):
        assert _may(OWN, f"compute.instanceGroupManagers.{permission}", _group(str(ID)))
        for other in (_group("other"), _group(f"{ID}-2"), _group(str(ID), "us-west1-a")):
            assert not _may(OWN, f"compute.instanceGroupManagers.{permission}", other)
    project = Resource("projects/p", "cloudresourcemanager.googleapis.com/Project")
    for permission in (
        *("compute.instanceGroupManagers.create", "compute.instanceGroupManagers.list"),
        *("compute.instances.create", "compute.instances.list", "compute.instances.delete"),
        *("iam.serviceAccounts.actAs", "resourcemanager.projects.getIamPolicy"),
    ):
        assert not _may(OWN, permission, project)
