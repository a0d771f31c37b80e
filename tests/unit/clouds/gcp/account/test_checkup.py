"""`sojourn doctor` on a project: it makes nothing, and never fails."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.clouds import gcp
from sojourn.clouds.gcp.checkup import NEEDED
from sojourn.core.errors import QuotaError
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User


def _findings() -> dict[str, tuple[str, str]]:
    return {finding.subject: (finding.verdict, finding.detail) for finding in gcp.examine({})}


def _become(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_an_administrator_lacks_nothing(project: SimGCP) -> None:
    found = _findings()
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    who = "administrator@laptops.iam.gserviceaccount.com"
    assert found["gcp identity"][1] == f"{who} in project {project.project_id}"
    assert found["gcp zone"][1] == "us-west1-b by default"
    assert found["gcp network"][1] == "default"
    assert found["gcp permissions"][1] == "none missing"
    limits = "2000 CPUs, 2000 spot CPUs, 64 L4, 64 T4, 64 A100"
    assert found["gcp quotas"][1] == f"limits in us-west1: {limits}"
    accounts = found["gcp accounts"][1]
    assert accounts == "0 used; a project has 100 unless it was given more: room for 100 tasks"
    assert project.inventory() == []


def test_a_project_without_room_for_another_task_is_told(project: SimGCP, user: User) -> None:
    made = [user.make_account(f"account-{number}") for number in range(100)]
    verdict, detail = _findings()["gcp accounts"]
    assert verdict == "note"
    assert detail.startswith("100 used; a project has 100 unless it was given more: request")
    with pytest.raises(QuotaError) as caught:
        sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="gcp"))
    assert "100 service accounts" in caught.value.hint
    for email in made:
        user.remove_account(email)
    assert project.inventory() == []


def test_who_has_the_documented_role_lacks_nothing_either(
    project: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    _become(monkeypatch, project.user(NEEDED))
    found = _findings()
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert "gcp quotas" not in found  # they may not be known, and that is no harm


def test_missing_permissions_are_named(project: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {"compute.firewalls.create", "iam.serviceAccounts.actAs"}
    _become(monkeypatch, project.user(set(NEEDED) - lacking))
    verdict, detail = _findings()["gcp permissions"]
    assert verdict == "note"
    assert detail == (
        "missing: compute.firewalls.create, iam.serviceAccounts.actAs; "
        "see docs/gcp.md for the full role"
    )


def test_an_api_that_is_disabled_is_told_with_what_enables_it(project: SimGCP) -> None:
    project.disable("compute")
    verdict, detail = _findings()["gcp network"]
    assert verdict == "note"
    assert "gcloud services enable compute.googleapis.com" in detail


def test_a_login_that_is_over_is_a_note(project: SimGCP) -> None:
    project.fail("oauth2:*", code="invalid_grant", status=400, times=9)
    [(subject, (verdict, detail))] = _findings().items()
    assert (subject, verdict) == ("gcp identity", "note")
    assert "gcloud auth application-default login" in detail


def test_no_default_network_is_told(project: SimGCP) -> None:
    project.remove_default_network()
    verdict, detail = _findings()["gcp network"]
    assert verdict == "note"
    assert "gcloud compute networks create default" in detail
