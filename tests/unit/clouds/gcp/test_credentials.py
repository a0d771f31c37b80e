"""Who the user is and which project is meant; wrong logins are told as such."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import sojourn
from sojourn.clouds.gcp import credentials
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.credentials import log_in
from sojourn.clouds.gcp.locations import Locations
from sojourn.core.errors import AuthError, Transient
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP

_FILE, _DATA = "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS_DATA"
_PROJECT = "GOOGLE_CLOUD_PROJECT"
_TASK = Task("#!/bin/sh\n", cloud="gcp")


def _key() -> dict[str, str]:
    found: dict[str, str] = json.loads(Path(os.environ[_FILE]).read_text())
    return found


def _works() -> None:
    assert Account().compute("network", "GET", "global/networks/default")["name"] == "default"


def _refused() -> AuthError:
    with pytest.raises(AuthError) as caught:
        sojourn.create(_TASK)
    return caught.value


def test_a_key_file(untouched: SimGCP) -> None:
    login = log_in()
    assert (login.project, login.who) == (untouched.project_id, _key()["client_email"])
    assert login.source == f"{_FILE} ({os.environ[_FILE]})"
    _works()


def test_the_contents_of_a_key_file(untouched: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_DATA, json.dumps(_key()))
    monkeypatch.setenv(_FILE, "/no/such/file")  # it comes second
    monkeypatch.delenv(_PROJECT)
    assert (log_in().source, log_in().project) == (_DATA, untouched.project_id)
    _works()


@pytest.mark.parametrize(
    ("data", "said"), [("{", "is not valid JSON"), ("[]", "is not a JSON object")]
)
def test_contents_that_are_none(
    untouched: SimGCP, monkeypatch: pytest.MonkeyPatch, data: str, said: str
) -> None:
    monkeypatch.setenv(_DATA, data)
    assert f"{_DATA} {said}" in _refused().message


def test_a_key_without_its_secret_is_told_without_the_rest(
    untouched: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = _key()
    secret = key.pop("private_key")
    monkeypatch.setenv(_DATA, json.dumps(key))
    error = _refused()
    assert "private_key" in error.message
    assert secret[100:140] not in str(error)


def test_the_gcloud_login_of_a_user(
    untouched: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gcloud auth application-default login` leaves a file without a project."""
    user = {
        "type": "authorized_user",
        "client_id": "i",
        "client_secret": "s",
        "refresh_token": "r",
        "account": "me@example.com",
    }
    (tmp_path / "gcloud").mkdir()
    (tmp_path / "gcloud" / "application_default_credentials.json").write_text(json.dumps(user))
    monkeypatch.delenv(_FILE)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    login = log_in()
    assert (login.who, login.source) == ("me@example.com", "your default login")


def test_no_login_is_told_with_what_makes_one(
    untouched: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_FILE)
    error = _refused()
    assert error.message.startswith("No usable Google Cloud credentials: ")
    assert "Run `gcloud auth application-default login`" in error.hint
    assert _DATA in error.hint


def test_a_file_that_is_missing_is_named(
    untouched: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_FILE, "/no/such/file")
    assert "/no/such/file" in _refused().message


def test_a_key_that_was_revoked_is_told(
    untouched: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({**_key(), "private_key_id": "another"}))
    monkeypatch.setenv(_FILE, str(file))
    error = _refused()
    assert error.message.startswith(f"Google Cloud rejected the credentials from {_FILE} ({file}):")
    assert "Invalid JWT Signature" in error.message
    assert "sojourn doctor" in error.hint


@pytest.mark.parametrize(
    "verb", [lambda: sojourn.create(_TASK), lambda: list(Locations(Account()).tasks())]
)
def test_a_login_that_is_rejected_at_every_call(
    project: SimGCP, verb: Callable[[], object]
) -> None:
    project.fail("*.*", code="authError", status=401, times=999)
    with pytest.raises(AuthError, match="Google Cloud rejected the credentials from") as caught:
        verb()
    assert "gcloud auth application-default login" in caught.value.hint
    project.heal()
    assert project.inventory() == []


def test_a_token_that_is_no_longer_good_is_renewed(project: SimGCP) -> None:
    account = Account()
    account.compute("network", "GET", "global/networks/default")
    project.project.accounts._tokens.clear()
    account.compute("network", "GET", "global/networks/default")
    names = [call.name for call in project.calls]
    assert names.count("compute:networks.get") == 3
    assert len(names) == 5  # a token before the first and before the last


def test_the_endpoint_of_tokens_may_be_silent_for_a_moment(
    project: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_PAUSES", (0.0, 0.0))
    project.fail("oauth2:*", cut=True, times=2)
    _works()
    project.fail("oauth2:*", cut=True, times=3)
    with pytest.raises(Transient, match="Google Cloud: "):
        Account().compute("network", "GET", "global/networks/default")


@pytest.mark.parametrize("name", credentials._PROJECTS)
def test_the_project_from_each_variable(
    untouched: SimGCP, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(_PROJECT)
    monkeypatch.setenv(name, "of-the-variable")
    assert log_in().project == "of-the-variable"


def test_the_project_of_the_key(untouched: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_PROJECT)
    assert log_in().project == untouched.project_id


def test_no_project_is_told(untouched: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_PROJECT)
    key = _key()
    del key["project_id"]
    monkeypatch.setenv(_DATA, json.dumps(key))
    error = _refused()
    assert error.message == "No Google Cloud project found"
    assert error.hint == "Set GOOGLE_CLOUD_PROJECT to the ID of your project."


def test_a_ci_job_logs_in_without_a_key(project: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workload identity federation: a token of the CI's own, exchanged for one of an account."""
    for name, value in project.federated(["compute.networks.get"]).items():
        monkeypatch.setenv(name, value)
    _works()
    assert {"sts:token", "iamcredentials:projects.serviceAccounts.generateAccessToken"} <= {
        call.name for call in project.calls
    }


def test_the_project_of_a_ci_job_is_in_the_account_that_it_acts_as(
    project: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in project.federated([]).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(_PROJECT)
    assert log_in().project == "laptops"


def test_what_the_account_of_a_ci_job_lacks_is_told(
    project: SimGCP, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in project.federated([]).items():
        monkeypatch.setenv(name, value)
    error = _refused()
    assert "Allow compute.machineTypes.get" in error.hint or "compute.networks.get" in error.hint
