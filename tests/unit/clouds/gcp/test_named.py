"""A cloud of settings: another key file, its project, and the zone of its tasks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sojourn
from sojourn.clouds.gcp.credentials import log_in
from sojourn.core.errors import AuthError
from sojourn.settings import user_file
from tests.simcloud.gcp.account import SimGCP

_FILE = "GOOGLE_APPLICATION_CREDENTIALS"


def test_a_task_is_in_the_project_and_zone_of_its_cloud(
    project: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user_file().parent.mkdir(parents=True)
    (user_file().parent / "key.json").write_bytes(Path(os.environ[_FILE]).read_bytes())
    monkeypatch.delenv(_FILE)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-another")
    settings = '[clouds.team]\nkind = "gcp"\ncredentials = "key.json"\nregion = "eu-west"\n'
    user_file().write_text(settings)
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="team"))
    assert any("europe-west1-d" in each for each in project.inventory())
    assert [(each.id, each.cloud) for each in sojourn.list_tasks()] == [(handle.id, "team")]
    handle.delete(fetch=False)
    assert project.inventory() == []
    key = str(user_file().parent / "key.json")
    assert log_in(file=key, project="mine").project == "mine"
    with pytest.raises(AuthError, match=r"Could not read .*: Is a directory"):
        log_in(file=str(tmp_path))
