"""What `sojourn doctor` tells of a subscription."""

from __future__ import annotations

import pytest

from sojourn.clouds.az import examine
from tests.simcloud.az.account import SimAzure


def _found() -> dict[str, tuple[str, str]]:
    return {each.subject: (each.verdict, each.detail) for each in examine({})}


def test_a_subscription_that_is_ready(laptop: SimAzure) -> None:
    found = _found()
    assert {level for level, _ in found.values()} == {"ok"}
    assert found["az identity"][1].endswith(" in subscription Simulated")
    assert found["az region"] == ("ok", "westus2 by default")
    assert found["az providers"] == ("ok", "all registered")
    assert found["az quotas"][1] == "vCPU limits in westus2: 350 on demand, 350 spot"
    assert laptop.inventory() == []


def test_providers_that_are_not_registered(laptop: SimAzure) -> None:
    laptop.unregister("Microsoft.Insights")
    level, text = _found()["az providers"]
    assert level == "note"
    assert "az provider register --namespace Microsoft.Insights" in text


def test_a_wrong_login(laptop: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "wrong")
    found = _found()
    assert list(found) == ["az identity"]
    assert "AZURE_CLIENT_SECRET" in found["az identity"][1]


def test_who_may_not_look_is_told_so(laptop: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    role = {"actions": ["Microsoft.Resources/subscriptions/read"]}
    for name, value in laptop.user(role).items():
        monkeypatch.setenv(name, value)
    found = _found()
    assert found["az identity"][0] == "ok"
    assert found["az providers"][0] == "note"
    assert "az quotas" not in found
