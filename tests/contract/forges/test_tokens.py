"""Where a token goes: to nobody whom it is not for, here or on a machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.forges.bench import Bench
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served

_FINE_GRAINED = "github_pat_11secretOfTheOwner"  # a machine of its own would get it

# What the processes above a job were started with.
_LOOK_UP = """
number=$$
while [ "$number" -gt 1 ]; do
    tr '\\0' '\\n' < /proc/$number/environ
    tr '\\0' ' ' < /proc/$number/cmdline
    number=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$number/status)
done 2>/dev/null
echo "looked around"
"""


@pytest.fixture
def forge() -> Iterator[SimForge]:
    """One driver is enough: all launch by the same functions."""
    with served(SimGitHub()) as made:
        made.driver, made.token = "github", _FINE_GRAINED
        yield made


def kept_in(root: Path) -> list[Path]:
    """The files with the token."""
    return [
        path
        for path in root.rglob("*")
        if path.is_file() and _FINE_GRAINED.encode() in path.read_bytes()
    ]


def test_no_token_goes_where_jobs_are_the_agents_user(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CML_TOKEN", bench.forge.token)
    bench.launch(token="")
    job = bench.finished(bench.job(_LOOK_UP))
    assert "looked around" in job.log
    assert bench.forge.token not in job.log
    assert kept_in(tmp_path) == []
    assert "Jobs on local run as your user and can read all that you can." in bench.told


def test_a_token_that_jobs_can_read_is_told_of(bench: Bench, tmp_path: Path) -> None:
    bench.launch(token_on_machine=True)
    assert kept_in(tmp_path)
    [told] = [each for each in bench.told if "Jobs on local" in each]
    assert told.endswith("including the token.")
