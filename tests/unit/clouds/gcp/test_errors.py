"""What Google says becomes an error that says what to do."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.vm import rest
from sojourn.core.errors import (
    AuthError,
    CapacityError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.iam import QUOTA
from tests.simcloud.gcp.operations import Failure
from tests.simcloud.gcp_user import User

_TASK = Task("#!/bin/sh\n", cloud="gcp", name="it")


def _refused(kind: type[SojournError], task: Task = _TASK) -> SojournError:
    with pytest.raises(kind) as caught:
        sojourn.create(task)
    return caught.value


def _alone(project: SimGCP) -> list[str]:
    """What is there beside the accounts that a test made."""
    return [line for line in project.inventory() if "service account other" not in line]


@pytest.mark.parametrize("service", ["compute", "iam", "cloudresourcemanager", "storage"])
def test_an_api_that_is_disabled_is_told_with_what_enables_it(
    project: SimGCP, service: str
) -> None:
    project.disable(service)
    error = _refused(AuthError)
    assert f"Run `gcloud services enable {service}.googleapis.com` to enable it." in error.hint


@pytest.mark.parametrize("metric", ["FIREWALLS", "INSTANCE_TEMPLATES"])
def test_a_quota_that_is_used_up_is_named_and_nothing_is_left(project: SimGCP, metric: str) -> None:
    project.quota("global", metric, 0)
    error = _refused(QuotaError)
    assert f"Quota '{metric}' exceeded.  Limit: 0.0 globally." in error.message
    assert "Quotas page" in error.hint
    assert project.inventory() == []


def test_a_quota_of_the_region(project: SimGCP) -> None:
    project.quota("us-west1", "INSTANCE_GROUP_MANAGERS", 0)
    assert "INSTANCE_GROUP_MANAGERS" in _refused(QuotaError).message
    assert project.inventory() == []


def test_a_hundred_service_accounts_are_told_at_once(
    project: SimGCP, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's answer is the one to those who ask too often, which others are patient with."""
    for number in range(QUOTA):
        project.project.accounts.add(
            f"other-{number}@{project.project_id}.iam.gserviceaccount.com", project.project_id
        )
    monkeypatch.setattr(rest, "_pause", lambda *_: pytest.fail("nobody waits for this"))
    error = _refused(QuotaError)
    assert "Maximum number of service accounts on project reached." in error.message
    assert "A project has 100 service accounts unless you request more." in error.hint
    assert "set permission_set to an account that tasks share" in error.hint
    assert _alone(project) == []


def test_no_capacity_for_an_operation_is_worth_another_try(project: SimGCP) -> None:
    failure = Failure("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone does not have enough.", 503)
    project.fail_operation("compute:instanceGroupManagers.insert", failure)
    assert "another machine or zone" in _refused(CapacityError).hint
    assert project.inventory() == []


def test_an_operation_that_fails_is_told(project: SimGCP) -> None:
    failure = Failure("QUOTA_EXCEEDED", "Quota 'FIREWALLS' exceeded.  Limit: 5.0 globally.", 403)
    project.fail_operation("compute:firewalls.insert", failure)
    assert "Quota 'FIREWALLS' exceeded" in _refused(QuotaError).message
    assert project.inventory() == []


def test_no_default_network_is_told_before_anything_is_made(project: SimGCP) -> None:
    project.remove_default_network()
    error = _refused(NotFound)
    assert error.message == f"No default network in project {project.project_id}"
    assert "gcloud compute networks create default" in error.hint
    assert "--option network=NAME" in error.hint
    assert project.inventory() == []


def test_a_bucket_of_the_tasks_name_that_is_anothers_is_a_conflict(project: SimGCP) -> None:
    project.foreign_bucket(str(TaskId.for_name("it", {})))
    task = Task("#!/bin/sh\n", cloud="gcp", name="it")
    error = _refused(Conflict, task)
    assert "belongs to another project" in error.message
    assert "Choose another name" in error.hint
    assert project.inventory() == []


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"spot": 0.5}, "spot", "takes no maximum price, got 0.5"),
        ({"disk_size": 70000}, "disk_size", "must be at most 65536, got 70000"),
        ({"timeout": 120 * 86400}, "timeout", "must be at most 10364400"),
        ({"parallelism": 1001}, "parallelism", "must be at most 1000, got 1001"),
        ({"options": {"x": "y"}}, "options.x", "unknown option; must be one of network"),
        ({"machine": "huge"}, "machine", "unknown machine type 'huge'"),
        ({"machine": "e2-standard-3"}, "machine", "e2-standard-3 is not available in us-west1-b"),
        (
            {"machine": "n1-standard-4+nvidia-nothing*1"},
            "machine",
            "nvidia-nothing is not available in us-west1-b",
        ),
        (
            {"machine": "n1-standard-4+nvidia-tesla-t4*8"},
            "machine",
            "a machine can have at most 4 nvidia-tesla-t4, got 8",
        ),
        ({"region": "us-east1"}, "region", "must be a zone, such as us-east1-b"),
        ({"region": "moon"}, "region", "unknown zone 'moon'"),
        ({"region": "us-moon1-a"}, "region", "unknown zone 'us-moon1-a'"),
        ({"image": "Windows"}, "image", "must be {user}@{project}/{family}"),
        ({"image": "windows"}, "image", "'windows' not found: project"),
        ({"image": "me@ubuntu-os-cloud/nothing"}, "image", "has no nothing"),
        (
            {"image": "me@ubuntu-os-cloud/ubuntu-2404-lts-arm64"},
            "image",
            "is for ARM64, but e2-custom-8-32768 is X86_64",
        ),
        ({"permission_set": "somebody"}, "permission_set", "must be the email of a service"),
        (
            {"permission_set": "a@b.iam.gserviceaccount.com,scopes=everything"},
            "permission_set",
            "unknown scope 'everything'",
        ),
        (
            {"permission_set": "a@b.iam.gserviceaccount.com,scopes=compute-rw"},
            "permission_set",
            "machines cannot write to their bucket with these scopes; add storage-rw",
        ),
        (
            {"permission_set": "a@simulated-project.iam.gserviceaccount.com"},
            "permission_set",
            "service account a@simulated-project.iam.gserviceaccount.com not found",
        ),
        ({"tags": {"Team": "ml"}}, "tags", "'Team' must have 1 to 63 lowercase letters"),
        ({"tags": {"team": "M L"}}, "tags", "the value of 'team' must have at most 63"),
        ({"tags": {"sojourn-id": "x"}}, "tags", "'sojourn-id' is reserved for Sojourn"),
        (
            {"tags": {f"t{number}": "" for number in range(59)}},
            "tags",
            "must be at most 58 on Google Cloud, got 59",
        ),
        ({"storage": sojourn.Storage(container="A")}, "storage.container", "must be a bucket"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_by_its_field_before_anything_is_made(
    untouched: SimGCP, given: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        sojourn.create(Task("#!/bin/sh\n", cloud="gcp", **given))
    assert caught.value.path == field
    assert said in caught.value.message


def test_too_many_calls_are_made_later(project: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def pause(attempt: int, _: str) -> float:
        tries.append(attempt)
        return 0.0

    monkeypatch.setattr(rest, "_pause", pause)
    for service in ("compute", "storage", "iam", "cloudresourcemanager"):
        project.throttle(f"{service}:*", times=2)
    handle = sojourn.create(_TASK)
    assert len(tries) >= 7  # obstore has a patience of its own
    project.heal()
    handle.delete(fetch=False)
    assert project.inventory() == []


def test_too_many_calls_without_end_are_worth_another_try(project: SimGCP) -> None:
    for service in ("compute", "iam"):
        project.throttle(f"{service}:*", times=999)
    account = Account(tries=1)
    with pytest.raises(Transient, match="Rate Limit Exceeded"):
        account.compute("network", "GET", "global/networks/default")
    with pytest.raises(Transient, match="Quota exceeded for quota metric"):
        account.call("accounts", "iam", "GET", f"v1/projects/{account.project}/serviceAccounts")


def test_an_error_without_a_reason_is_told_as_it_is(project: SimGCP) -> None:
    project.fail("compute:networks.get", code="strange", status=418)
    with pytest.raises(SojournError, match="A test made this call fail") as caught:
        Account(tries=1).compute("network", "GET", "global/networks/default")
    assert "sojourn doctor" in caught.value.hint
