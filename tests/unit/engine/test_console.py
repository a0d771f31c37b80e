"""What is quoted of a machine's console."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import AuthError
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Fleet, Member
from sojourn.engine.console import console_end, last_lines

ID = TaskId.deterministic("x")


class FakeCloud:
    """With one machine, which prints this."""

    def __init__(self, printed: str = "", error: Exception | None = None) -> None:
        self._printed = printed
        self._error = error
        self.asked: list[str] = []

    def scaler(self, id: TaskId) -> Any:
        return self

    def fleet(self, ctx: Context) -> Fleet:
        return Fleet(1, (Member("m1"),))

    def console(self, ctx: Context, machine: str) -> str:
        self.asked.append(machine)
        if self._error:
            raise self._error
        return self._printed


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        ("", []),
        ("one\r\ntwo\n\n", ["one", "two"]),
        ("[\x1b[0;32m  OK  \x1b[0m] Started\x1b[K it.", ["[  OK  ] Started it."]),
        ("a\x1b]0;title\x07b\x9bc\u202ed", ["a\\x1b]0;title\\x07b\\x9bc\\x202ed"]),
        ("10%\r20%\r30%", ["10%", "20%", "30%"]),
        ("x" * 500, ["x" * 197 + "..."]),
        ("\n".join(map(str, range(100))), [str(number) for number in range(90, 100)]),
    ],
)
def test_the_last_lines_do_nothing_on_a_terminal(printed: str, quoted: list[str]) -> None:
    assert last_lines(printed) == quoted


def test_a_machine_that_has_not_told_of_itself_is_found() -> None:
    cloud: Any = FakeCloud("kernel panic\n")
    assert console_end(Context(), cloud, ID, "") == ["kernel panic"]
    assert console_end(Context(), cloud, ID, "m2") == ["kernel panic"]
    assert cloud.asked == ["m1", "m2"]


@pytest.mark.parametrize("error", [AuthError("denied"), OSError("unreachable")])
def test_who_may_not_look_does_without(error: Exception) -> None:
    cloud: Any = FakeCloud(error=error)
    assert console_end(Context(), cloud, ID, "") == []
