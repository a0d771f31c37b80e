from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sojourn.agent.runner import RunnerLife
from sojourn.core.runner import CREDENTIALS, Runner
from sojourn.forges.forge import Job

RUNNER = Runner("gitea", "https://gitea.example/acme/widgets", "one", "the-task", idle_timeout=1)


@pytest.fixture
def life(tmp_path: Path) -> RunnerLife:
    (tmp_path / "workdir" / "jobs").mkdir(parents=True)
    environment = {CREDENTIALS: json.dumps({"registration": "it's a secret"})}
    return RunnerLife(RUNNER, environment, tmp_path, tmp_path / "workdir", lambda: None)


def test_the_script_is_told_what_it_needs(life: RunnerLife, tmp_path: Path) -> None:
    life.prepare()
    credentials = tmp_path / "workdir" / "state" / "credentials"
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert credentials.read_text() == "registration='it'\"'\"'s a secret'\n"
    assert (tmp_path / "workdir" / "state" / "port").read_text().strip().isdecimal()


def test_what_a_job_puts_in_the_way_is_no_job(life: RunnerLife, tmp_path: Path) -> None:
    now = tmp_path / "workdir" / "jobs" / "now"
    now.mkdir()
    assert life._now() is None
    now.rmdir()
    os.mkfifo(now)
    assert life._now() == Job("")
    now.unlink()
    now.symlink_to("/etc/passwd")
    assert life._now() is None


def test_a_program_that_has_metrics_runs_when_it_tells_of_jobs(
    life: RunnerLife, tmp_path: Path
) -> None:
    life.prepare()
    state = tmp_path / "workdir" / "state"
    (state / "gauge").write_text("jobs name\n")
    (state / "running").touch()
    assert not life.over()
    assert not life._runs
