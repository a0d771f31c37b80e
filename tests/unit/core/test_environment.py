from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.environment import environment_problems, not_here, resolve_environment

LOCAL = {"HOME": "/me", "AWS_KEY": "k", "AWS_REGION": "r", "AWSX": "x", "LANG": ""}


@pytest.mark.parametrize(
    ("environment", "resolved"),
    [
        ({}, {}),
        ({"A": "1"}, {"A": "1"}),
        ({"HOME": ""}, {"HOME": "/me"}),
        ({"HOME": "/you"}, {"HOME": "/you"}),
        ({"ABSENT": ""}, {"ABSENT": ""}),
        ({"LANG": ""}, {"LANG": ""}),
        ({"home": ""}, {"home": ""}),
        ({"AWS_*": ""}, {"AWS_KEY": "k", "AWS_REGION": "r"}),
        ({"AWS?": ""}, {"AWSX": "x"}),
        ({"AWS[XY]": ""}, {"AWSX": "x"}),
        ({"AWS[!X]*": ""}, {"AWS_KEY": "k", "AWS_REGION": "r"}),
        ({"NO_*": ""}, {}),
        ({"aws_*": ""}, {}),
        ({"*": ""}, LOCAL),
        ({"AWS_*": "", "AWS_KEY": "mine"}, {"AWS_KEY": "mine", "AWS_REGION": "r"}),
        ({"AWS_KEY": "mine", "AWS_*": ""}, {"AWS_KEY": "mine", "AWS_REGION": "r"}),
    ],
)
def test_imports(environment: dict[str, str], resolved: dict[str, str]) -> None:
    assert resolve_environment(environment, LOCAL) == resolved


CI = {
    "CI": "true",
    "CI_PIPELINE_ID": "1",
    "GITHUB_TOKEN": "t",
    "BITBUCKET_COMMIT": "c",
    "CML_TOKEN": "m",
    "REPO_TOKEN": "r",
}
NOT_CI = {"CIRCLE": "x", "GITHUB": "x", "MY_CI": "x", "REPO_TOKENS": "x", "CMLX": "x", "ci": "x"}


def test_ci_variables_are_always_taken() -> None:
    assert resolve_environment({}, CI | NOT_CI) == CI


def test_what_the_user_wrote_wins_over_ci() -> None:
    assert resolve_environment({"CI": "mine"}, CI) == CI | {"CI": "mine"}
    assert resolve_environment({"CI": ""}, CI) == CI


def test_names_that_a_shell_cannot_set_are_not_taken() -> None:
    local = {"BASH_FUNC_x%%": "() { :; }", "BASH_OK": "1", "BASH-X": "2"}
    assert resolve_environment({"BASH*": ""}, local) == {"BASH_OK": "1"}


@pytest.mark.parametrize(
    "value", ["'\"`$(x)\\", "a\nb\n", "é😀\u2028", " ", "x" * 100_000, "\t\r", "${A} %{b}", "*"]
)
def test_values_are_unchanged(value: str) -> None:
    assert list(environment_problems({"A": value})) == []
    assert resolve_environment({"A": value, "B": ""}, {"B": value}) == {"A": value, "B": value}


@given(
    st.dictionaries(st.from_regex(r"[A-BD-Z_][A-Z0-9_]{0,5}", fullmatch=True), st.text(min_size=1))
)
def test_given_values_come_back_as_they_are(environment: dict[str, str]) -> None:
    assert resolve_environment(environment, LOCAL | CI) == CI | environment


GLOB = "a glob imports local variables; its value must be empty"
NAME = "name must contain only letters, digits and underscores, and must not start with a digit"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("A", "x\0y", "must not contain a NUL character"),
        ("A*", "x", GLOB),
        ("[AB]", "x", GLOB),
        ("1A", "x", NAME),
        ("1A", "", NAME),
        ("A-B", "", NAME),
        ("A-B", "x", NAME),
        ("A B", "x", NAME),
        ("", "x", NAME),
        ("A=B", "", NAME),
        ("É", "x", NAME),
        ("A\n", "x", NAME),
        ("A*\n", "", NAME),
        ("A*$(x)", "", NAME),
        ("A", 1, "names and values must be strings"),
        ("A", None, "names and values must be strings"),
        (1, "x", "names and values must be strings"),
    ],
)
def test_problems(name: Any, value: Any, message: str) -> None:
    [problem] = environment_problems({"OK": "fine", name: value, "G_*": "", "_9": ""})
    assert (problem.path, problem.message) == (f"environment.{name}", message)


def test_a_problem_a_variable_without_values() -> None:
    problems = list(environment_problems({"A*": "secret1", "1": "secret2", "B": b"secret3"}))  # type: ignore[dict-item]
    assert [problem.path for problem in problems] == [
        "environment.A*",
        "environment.1",
        "environment.B",
    ]
    assert "secret" not in str(problems)


def test_what_should_be_imported_and_is_not_there_is_known() -> None:
    wanted = {"HOME": "", "ABSENT": "", "LANG": "", "AWS_*": "", "GCP_*": "", "GIVEN": "x"}
    assert not_here(wanted, LOCAL) == ["ABSENT", "GCP_*"]


def test_values_that_no_program_can_be_given_are_refused() -> None:
    fits = {"NAME": "x" * (131_071 - len("NAME="))}
    assert list(environment_problems(fits)) == []
    [problem] = environment_problems({"NAME": fits["NAME"] + "ä"})
    assert problem.path == "environment.NAME"
    assert "including its name, got 131,073;" in problem.message
