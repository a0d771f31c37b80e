"""A cloud of settings: another profile of ~/.aws, and the region of its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn
from tests.simcloud.aws.account import SimAWS

_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def team(laptop: SimAWS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimAWS:
    """The account in a profile; the variables are somebody else's."""
    known = laptop.environment()
    lines = [f"{name.lower()} = {known[name]}" for name in _KEYS]
    (tmp_path / "credentials").write_text("\n".join(["[ml]", *lines]))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in _KEYS:
        monkeypatch.setenv(name, "theirs")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("sojourn.toml").write_text(
        '[clouds.team]\nkind = "aws"\nprofile = "ml"\nregion = "eu-north"\n'
    )
    return laptop


def test_a_task_is_in_the_account_and_region_of_its_cloud(team: SimAWS) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="team"))
    assert f"group {handle.id} in eu-north-1" in team.inventory()
    found = sojourn.list_tasks()  # the other credentials are told to be wrong
    assert [(each.id, each.cloud) for each in found] == [(handle.id, "team")]
    handle.delete(fetch=False)
    assert team.inventory() == []
