"""Tasks on Google Cloud, with machines: what only Google does to them; see `vm` for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn import State
from sojourn.clouds.gcp.resources import address_of
from sojourn.clouds.vm import machine_settings
from tests.contract.clouds import gcp_kit
from tests.contract.clouds.gcp_kit import GcpKit
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.gcp_user import ZONE, User
from tests.simcloud.vm.gcp_side import GcpSide
from tests.simcloud.vm.scripts import RESUMING
from tests.simcloud.vm.sides import gone, machine_of, outcomes
from tests.support.waiting import until

pytestmark = pytest.mark.slow

_MADE = "mkdir output; echo made > output/file"


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GcpKit]:
    with in_use(gcp_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def googler(kit: GcpKit) -> Iterator[User]:
    user = User(kit.environment())
    yield user
    user.close()


@pytest.fixture
def given(kit: GcpKit, googler: User) -> Iterator[str]:
    """A service account of the user's, which may do all with storage; the rest is up to tests."""
    email = googler.make_account()
    googler.bind("roles/storage.admin", f"serviceAccount:{email}")
    yield email
    googler.unbind(email)
    googler.remove_account(email)


def test_a_quota_is_told_until_it_is_raised(kit: GcpKit, lab: Lab) -> None:
    kit.account.quota("us-west1", "PREEMPTIBLE_CPUS", 4)
    handle = lab.create("echo here", spot=0)
    until(lambda: "the quota PREEMPTIBLE_CPUS of 4 is used up" in handle.status().reason)
    assert handle.status().state is State.QUEUED
    kit.account.quota("us-west1", "PREEMPTIBLE_CPUS", 100)
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["here"]
    handle.delete()


def test_google_deletes_a_machine_whose_time_is_over(kit: GcpKit, lab: Lab, tmp_path: Path) -> None:
    kit.account.timing.token = 86400.0
    handle = lab.create(RESUMING, timeout=600)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    first = machine_of(GcpSide(kit), handle)
    kit.account.advance(600 + 3600 + 1)
    kit.account.wait(lambda: gone(first), 60)
    assert handle.wait().status is State.STOPPED  # and its group does not replace it
    assert handle.machines() == []
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    assert len(outcomes(handle)) == 2
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "checkpoint": "half\n"}


@pytest.mark.parametrize("scopes", ["", ",scopes=storage-rw,compute-rw"])
def test_machines_with_an_account_of_the_users(
    kit: GcpKit, lab: Lab, googler: User, given: str, scopes: str
) -> None:
    googler.bind("roles/compute.instanceAdmin.v1", f"serviceAccount:{given}")
    handle = lab.create(_MADE, permission_set=f"{given}{scopes}")
    assert handle.wait().status is State.SUCCEEDED
    until(lambda: all(map(gone, kit.account.instances())))
    assert len(kit.account.instances()) == 1
    handle.delete()
    assert lab.output() == {"file": "made\n"}


@pytest.mark.parametrize("scopes", ["", ",scopes=storage-rw"])
def test_an_account_that_cannot_leave_the_group_ends_the_task_on_the_first_machine(
    kit: GcpKit, lab: Lab, given: str, scopes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_RIGHTS_WITHIN", 1.0)
    handle = lab.create(_MADE, permission_set=f"{given}{scopes}")
    until(lambda: handle.status().state is State.FAILED, 60)
    action = "compute.instanceGroupManagers.update"
    assert f"permission_set is not allowed {action}, so" in handle.status().reason
    assert len(kit.account.instances()) == 1
    handle.delete()
    assert lab.output() == {}


def test_an_account_that_may_not_use_the_store_is_told_though_machines_cannot_tell(
    kit: GcpKit, lab: Lab, googler: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 2.0)
    email = googler.make_account()
    googler.bind("roles/compute.instanceAdmin.v1", f"serviceAccount:{email}")
    handle = lab.create(_MADE, permission_set=email)
    until(lambda: handle.status().state is State.STOPPED, 60)
    assert "permission_set is not allowed to: docs/gcp.md" in handle.status().reason
    assert len(kit.account.instances()) == 1
    handle.delete()
    googler.unbind(email)
    googler.remove_account(email)


def test_what_machines_are_told_comes_from_the_template_and_the_keys_of_others_do_not(
    kit: GcpKit, lab: Lab, googler: User
) -> None:
    handle = lab.create("until test -f /dev/shm/go; do sleep 0.05; done")
    instance = machine_of(GcpSide(kit), handle)
    found = googler.get(f"zones/{ZONE}/instances/{instance.name}")
    [account] = found["serviceAccounts"]
    assert account["email"] == address_of(handle.id, kit.account.project_id)
    metadata = {each["key"]: each["value"] for each in found["metadata"]["items"]}
    assert metadata["block-project-ssh-keys"] == "TRUE"
    assert metadata["enable-oslogin"] == "FALSE"
    assert found["labels"]["sojourn-id"] == handle.id
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_marks_of_how_ranks_ended_are_at_the_group(kit: GcpKit, lab: Lab, googler: User) -> None:
    handle = lab.create("exit $SOJOURN_RANK", parallelism=2)
    assert handle.wait().status is State.FAILED
    until(lambda: all(map(gone, kit.account.instances())))
    group = googler.group(handle.id)
    marks = group["allInstancesConfig"]["properties"]["metadata"]
    assert marks["sojourn-rank-0"].startswith("succeeded 1 0")
    assert marks["sojourn-rank-1"].startswith("failed 1 1")
    handle.delete(fetch=False)
