"""A cloud of settings: another subscription, and the region of its tasks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sojourn
from tests.simcloud.az.account import SimAzure

_SUBSCRIPTION = "AZURE_SUBSCRIPTION_ID"


def test_a_task_is_in_the_subscription_and_region_of_its_cloud(
    laptop: SimAzure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    own = os.environ[_SUBSCRIPTION]
    monkeypatch.setenv(_SUBSCRIPTION, "00000000-0000-0000-0000-000000000000")
    settings = f'[clouds.team]\nkind = "az"\nsubscription = "{own}"\nregion = "eu-west"\n'
    Path("sojourn.toml").write_text(settings)
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="team"))
    assert handle.task().region == "eu-west"
    assert [(each.id, each.cloud) for each in sojourn.list_tasks()] == [(handle.id, "team")]
    handle.delete(fetch=False)
    assert laptop.inventory() == []
