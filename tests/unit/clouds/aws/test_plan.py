"""A dry run asks the account, and makes nothing in it."""

from __future__ import annotations

from pathlib import Path

import sojourn
from tests.simcloud.aws.account import SimAWS


def test_a_dry_run_makes_nothing(laptop: SimAWS, tmp_path: Path) -> None:
    workdir = tmp_path / "project"
    workdir.mkdir()
    (workdir / "train.sh").write_text("#!/bin/sh\n")
    before = laptop.inventory()
    plan = sojourn.plan(workdir / "train.sh", cloud="aws", workdir=workdir)
    assert (plan.id, plan.exists) == ("", False)
    kinds = [title.partition(" ID")[0] for title in plan.resources]
    assert "bucket" in kinds
    assert len(kinds) == len(set(kinds)) > 5
    assert laptop.inventory() == before
    assert not (tmp_path / "state").exists()
