"""Whose login is used, for which subscription, and what is said of one that does not work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn.clouds.az import credentials
from sojourn.clouds.az.account import Account
from sojourn.core.errors import AuthError, Transient
from tests.simcloud.az.account import SimAzure


def _groups() -> list[object]:
    return list(Account(tries=1).pages("tasks", "resourceGroups"))


def test_the_variables(laptop: SimAzure) -> None:
    assert _groups() == []
    assert Account().subscription == laptop.subscription


def test_the_default_subscription_of_the_command_line(
    laptop: SimAzure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID")
    with pytest.raises(AuthError, match="No Azure subscription selected"):
        _groups()
    known = [{"id": "other", "isDefault": False}, {"id": laptop.subscription, "isDefault": True}]
    text = json.dumps({"subscriptions": known})
    (tmp_path / ".azure").mkdir()
    (tmp_path / ".azure" / "azureProfile.json").write_text(text, encoding="utf-8-sig")
    assert _groups() == []
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(AuthError, match="No Azure subscription selected"):
        _groups()


def test_a_wrong_secret_is_told_by_the_variables(
    laptop: SimAzure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "wrong-9f3b")
    with pytest.raises(AuthError) as caught:
        _groups()
    assert "rejected the credentials from AZURE_TENANT_ID, AZURE_CLIENT_ID and" in str(caught.value)
    assert "wrong-9f3b" not in str(caught.value)


def test_a_token_of_a_ci_system(laptop: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    federated = laptop.federate(laptop.environment())
    monkeypatch.delenv("AZURE_CLIENT_SECRET")
    for name, value in federated.items():
        monkeypatch.setenv(name, value)
    assert _groups() == []
    assert "AZURE_FEDERATED_TOKEN_FILE" in credentials.used().source


def test_no_login_at_all(laptop: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AuthError, match="No Azure credentials found") as caught:
        _groups()
    assert "az login" in caught.value.hint


def test_tokens_that_have_run_out_are_made_anew(laptop: SimAzure) -> None:
    account = Account()
    assert list(account.pages("tasks", "resourceGroups")) == []
    laptop.expire_tokens()
    assert list(account.pages("tasks", "resourceGroups")) == []


def test_a_login_service_that_does_not_answer(laptop: SimAzure) -> None:
    laptop.fail("entra.*", cut=True, times=100)
    with pytest.raises((Transient, AuthError)):
        _groups()
