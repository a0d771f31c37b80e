from __future__ import annotations

import re

import pytest

from sojourn.core import errors
from sojourn.core.errors import (
    Cancelled,
    InvalidInput,
    MissingDependency,
    NotFound,
    Problem,
    SojournError,
    TaskFailed,
    Transient,
)
from sojourn.core.installation import install_command


def test_what_happened_and_what_to_do() -> None:
    error = NotFound("There is no such task", hint="See `sojourn list`.")
    assert str(error) == "There is no such task\nSee `sojourn list`."
    assert (error.message, error.hint) == ("There is no such task", "See `sojourn list`.")
    assert str(NotFound("Gone")) == "Gone"


def test_invalid_input_names_every_field() -> None:
    error = InvalidInput("spot", "is wrong", Problem("name", "as well"))
    assert str(error) == "spot: is wrong\nname: as well"
    assert error.path == "spot"
    assert error.problems == (Problem("spot", "is wrong"), Problem("name", "as well"))


def test_missing_dependency_says_what_to_install() -> None:
    error = MissingDependency("aws", "boto3 is not installed")
    assert str(error) == f"boto3 is not installed\nRun `{install_command('aws')}` to install it."
    assert error.extra == "aws"


def test_transient() -> None:
    assert Transient("Busy").retry_after == 1.0
    error = Transient("Busy", hint="Wait.", retry_after=5)
    assert (str(error), error.retry_after) == ("Busy\nWait.", 5)


def test_task_failed() -> None:
    error = TaskFailed("It failed", exit=3, hint="See the logs.")
    assert (str(error), error.exit) == ("It failed\nSee the logs.", 3)


def test_cancelled() -> None:
    assert str(Cancelled()) == "Cancelled"


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n != "Problem"])
def test_the_tree_is_drawn(name: str) -> None:
    assert issubclass(getattr(errors, name), SojournError)
    assert re.search(rf"\b{name}\b", errors.__doc__ or "")


def test_what_python_prints_of_an_error_does_nothing_to_a_terminal() -> None:
    error = SojournError("a\x1b[2J\nb\ud800", hint="c\x07")
    assert str(error) == "a\\x1b[2J\nb\\ud800\nc\\x07"
    assert (error.message, error.hint) == ("a\x1b[2J\nb\ud800", "c\x07")
