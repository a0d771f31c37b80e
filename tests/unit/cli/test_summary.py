"""The last line of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sojourn.cli.times import seconds_between
from tests.unit.cli.shell import Shell

_STORES = ("--workdir", ".", "--output", "out")


def _last(shell: Shell, *args: str) -> str:
    return shell("run", *args).stderr.splitlines()[-1]


def test_what_came_home_and_where_to(shell: Shell) -> None:
    script = "mkdir -p out/x; echo 1 > out/a; echo 22 > out/x/b"
    told = _last(shell, *_STORES, "--", "sh", "-c", script)
    where = re.escape(f"{shell.cwd}/out")
    right = rf"Summary: succeeded, exit code 0, ran \w+, 2 files \(5 B\) in {where}"
    assert re.fullmatch(right, told)


def test_a_home_is_a_tilde(shell: Shell) -> None:
    shell.environment["HOME"] = str(shell.cwd.parent)
    told = _last(shell, *_STORES, "--", "sh", "-c", "mkdir out; echo 1 > out/a; exit 3")
    assert re.fullmatch(
        r"Summary: failed, exit code 3, ran \w+, 1 file \(2 B\) in ~/project/out", told
    )


def test_attempts_are_told_if_there_were_several(shell: Shell) -> None:
    script = "test $SOJOURN_ATTEMPT = 2 || kill -9 $PPID"
    rows, _ = shell.rows_and_notes("run", "--", "sh", "-c", script)
    [row] = [row for row in rows if row["type"] == "ended"]
    assert (row["attempts"], row["exit_code"], row["results"]) == (2, 0, "")
    told = _last(shell, "--", "sh", "-c", script)
    assert re.fullmatch(r"Summary: succeeded, exit code 0, ran \w+, 2 attempts", told)


def test_what_is_here_already_is_not_counted(shell: Shell) -> None:
    shell.file("out/a", "1")
    told = _last(shell, *_STORES, "--keep", "--name", "x", "--", "true")
    assert told.endswith(f", no new files in {Path(shell.cwd)}/out")


@pytest.mark.parametrize(
    ("begins", "ends", "seconds"),
    [
        (["2026-01-01T00:00:10Z", "2026-01-01T00:00:00Z"], ["2026-01-01T00:01:00.400000Z", ""], 60),
        (["2026-01-01T00:00:10Z"], ["2026-01-01T00:00:00Z"], 0),
        (["x"], ["2026-01-01T00:00:00Z"], None),
        ([], [], None),
    ],
)
def test_a_machine_may_write_any_time(
    begins: list[str], ends: list[str], seconds: int | None
) -> None:
    assert seconds_between(begins, ends) == seconds
