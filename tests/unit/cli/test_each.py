"""Verbs that take several ids."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone

import pytest

from sojourn.core.clock import utc
from tests.support.waiting import until
from tests.unit.cli.shell import Shell


@pytest.mark.parametrize("verb", ["stop", "start", "delete"])
def test_what_is_not_there_is_refused_before_anything_is_done(shell: Shell, verb: str) -> None:
    tasks = [shell.detached("sleep 60", "--name", name) for name in ("d1", "d2")]
    result = shell(verb, "d1", "nope", "d2")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: Task nope not found\n")
    assert shell.tasks() == tasks
    assert "stopped" not in {shell.state(task) for task in tasks}


def test_a_task_that_is_named_twice_counts_once(shell: Shell) -> None:
    task = shell.detached("true", "--name", "a")
    assert shell.ok("delete", "a", task, "a") == f"Deleted {task}\n"


def _one_whose_home_is_gone(shell: Shell) -> tuple[str, str]:
    shell.file("gone/old", "")
    options = ("--workdir", "gone", "--output", ".")
    bad = shell.detached("echo x > new", "--name", "bad", *options)
    good = shell.detached("true", "--name", "good")
    for task in (bad, good):
        until(lambda task=task: shell.state(task) == "succeeded")  # type: ignore[misc]
    shutil.rmtree(shell.cwd / "gone")
    return bad, good


def test_one_that_fails_does_not_keep_it_from_the_others(shell: Shell) -> None:
    bad, good = _one_whose_home_is_gone(shell)
    result = shell("delete", "bad", "good")
    assert (result.returncode, result.stdout) == (2, f"Deleted {good}\n")
    assert f"Error: {bad}: workdir: results belong in " in result.stderr
    assert f"Run `sojourn delete --force {bad}` to remove it anyway." in result.stderr
    assert shell.tasks() == [bad]


def test_one_that_fails_with_json(shell: Shell) -> None:
    bad, good = _one_whose_home_is_gone(shell)
    result = shell("delete", "--json", "bad", "good")
    assert (result.returncode, result.stderr) == (2, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    (error,) = (row for row in rows if row["type"] == "error")
    assert (error["id"], error["error"]) == (bad, "InvalidInput")
    assert rows[-1] == {"type": "deleted", "id": good}


def test_what_was_deleted_since_the_command_began_is_deleted(shell: Shell) -> None:
    """Of two that start at the same time, one may be done before the other looks."""
    first = shell.detached("true", "--name", "first")
    second = shell.detached("true", "--name", "second")
    for task in (first, second):
        until(lambda task=task: shell.state(task) == "succeeded")  # type: ignore[misc]
    shell.ok("delete", "first")
    refused = shell("delete", "first", "second")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert shell.tasks() == [second]

    saved = shell.home / "state/sojourn/logs" / f"{first}.json"
    entry = json.loads(saved.read_text())
    entry["ending"]["deleted"] = utc(datetime.now(timezone.utc) + timedelta(minutes=5))
    saved.write_text(json.dumps(entry))
    assert shell.rows_and_notes("delete", "first")[0] == [{"type": "deleted", "id": first}]
    result = shell("delete", "first", "second")
    assert (result.returncode, result.stdout) == (0, f"Deleted {first}\nDeleted {second}\n")
    assert "Task first was deleted 0s ago: succeeded." in result.stderr
    assert shell("stop", "first").returncode == 1
