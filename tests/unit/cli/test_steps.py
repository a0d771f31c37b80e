"""How steps are shown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn
from sojourn.cli.steps import done


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
