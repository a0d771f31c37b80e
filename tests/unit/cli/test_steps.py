"""How steps are shown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn
from sojourn.cli.steps import brief, done
from sojourn.core.ids import TaskId
from sojourn.engine import ledger


def _first_words() -> Iterator[str]:
    """With which word each step of the source begins."""
    for path in Path(sojourn.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("step", "phase"):
                text = node.args[0] if node.args else None
                if isinstance(text, ast.JoinedStr):
                    text = text.values[0]
                if isinstance(text, ast.Constant):
                    yield str(text.value).split()[0]


def test_every_step_has_a_past_tense() -> None:
    words = set(_first_words())
    assert "Creating" in words
    assert [word for word in sorted(words) if done(word) == f"{word}: done"] == []


@pytest.mark.parametrize(
    ("step", "past"), [("Creating x y", "Created x y"), ("Stopping", "Stopped")]
)
def test_a_step_that_is_over(step: str, past: str) -> None:
    assert done(step) == past


def test_a_message_has_names_for_tasks_and_a_tilde_for_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    task = str(TaskId.deterministic("cc"))
    home = Path.home()
    assert brief(
        f"Keeping {task}. Run `sojourn delete --force {task}`, `sojourn gc --yes {task}`"
    ) == ("Keeping cc. Run `sojourn delete --force cc`, `sojourn gc --yes cc`")
    assert brief(f"{task} is stopped, its log in {home}/x") == "cc is stopped, its log in ~/x"
    for same in (f"bucket {task}", f"Task {task[:-1]} not found", f"'{home}/a b'"):
        assert brief(same) == same
    other = TaskId.random("cc")
    ledger.remember(ledger.Origin(str(other), "local", "/", "", None, (), ""))
    assert brief(f"Task {task}") == f"Task {task}"


def test_two_deleted_tasks_of_a_name_have_whole_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tasks = [TaskId.random("cc") for _ in range(2)]
    ledger.save_log(tasks[0], [], whose=False)
    assert brief(f"Task {tasks[0]}") == "Task cc"
    ledger.save_log(tasks[1], [], whose=False)
    assert brief(f"Task {tasks[0]}") == f"Task {tasks[0]}"
