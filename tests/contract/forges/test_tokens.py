"""Where a token goes: to nobody whom it is not for, here or on a machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sojourn import runners
from sojourn.core.errors import AuthError
from tests.contract.forges.bench import Bench
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.support.trees import files_below

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
    found = []
    for path in files_below(root):
        with suppress(FileNotFoundError):  # a moment ago
            if path.is_file() and _FINE_GRAINED.encode() in path.read_bytes():
                found.append(path)
    return found


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


class _Other:
    """Another forge, of which this computer knows a token, and what it and its token do here."""

    token = "ghp_ofAnotherForge"

    def __init__(self, forge: SimForge, heard: SimForge) -> None:
        forge.token = self.token
        self.forge = forge
        self.texts: list[str] = []
        heard.before = lambda call: self.texts.append(f"{call.headers} {call.body}")

    @property
    def was_told(self) -> bool:
        return any(self.token in each for each in self.texts)


@pytest.fixture
def other(forge: SimForge) -> Iterator[_Other]:
    with served(SimGitHub()) as made:
        made.driver = "github"
        yield _Other(made, forge)


def test_delete_sends_a_token_to_its_own_forge_alone(
    bench: Bench, other: _Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = bench.launch()
    there = bench.launch(repo=other.forge.repo, token=other.token)
    for name in ("CML_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, other.token)
    for token in ("", other.token):
        with pytest.raises(AuthError):
            here.registered(token)
    typed = [sys.executable, "-m", "sojourn", "runner", "delete", "--token", other.token]
    done = subprocess.run([*typed, here.id, there.id], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    both = ", ".join(sorted((bench.forge.url, other.forge.url)))
    assert f"token: cannot be for all of {both}" in done.stderr
    there.remove()
    assert other.forge.work.runners == {}
    here.remove(force=True)
    assert any("stays registered, offline: No token for" in each for each in bench.told)
    assert not here.exists()
    assert not other.was_told
    [orphan] = bench.forge.work.runners.values()
    assert orphan.name == here.id
    bench.forge.work.runners.clear()


def test_a_token_never_used_here_goes_only_where_the_user_says(
    bench: Bench, other: _Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, honest = bench.launch(repo=other.forge.repo, token=other.token), bench.launch()
    for file in [path for path in files_below(tmp_path) if path.name == "task.json"]:
        file.write_text(file.read_text().replace(other.forge.url, bench.forge.url))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-computer"))
    for runner in (claims, honest):
        with pytest.raises(AuthError, match="which only the task names"):
            runner.registered(other.token)
    claims.remove(token=other.token, repo=other.forge.repo)
    assert any(f"not {other.forge.repo}" in each for each in bench.told)
    assert not claims.exists()
    assert not other.was_told
    honest.remove(token=bench.forge.token, repo=bench.forge.repo, force=True)
    assert bench.forge.work.runners == {}
    other.forge.work.runners.clear()


def test_a_runner_that_claims_to_be_of_another_forge_gets_no_token(
    bench: Bench, other: _Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where jobs can write to the store, as on local, the task can say what they like."""
    runner = bench.launch(repo=other.forge.repo, token=other.token)
    monkeypatch.setenv("CML_TOKEN", other.token)
    [file] = (path for path in files_below(tmp_path) if path.name == "task.json")
    file.write_text(file.read_text().replace(other.forge.url, bench.forge.url))
    assert runners.get(runner.id).runner().repo == bench.forge.repo
    runner.remove()
    assert not other.was_told
    assert not runner.exists()
    other.forge.work.runners.clear()
