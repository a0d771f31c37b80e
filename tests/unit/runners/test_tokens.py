"""A token goes to the forge that it is for: two of them on loopback, each with its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn import runners
from sojourn.core.errors import AuthError
from sojourn.core.events import Event, Note
from sojourn.core.userfolders import state_home
from sojourn.forges import DRIVERS, module_of
from sojourn.runners.target import find_target
from sojourn.runners.tokens import GENERAL, find_token, forge_of, known_forges, remember
from tests.simforge.github import SimGitHub
from tests.simforge.server import Call, SimForge, served

_OURS, _THEIRS = "ghp_ours", "ghp_theirs"


class _Heard:
    """What a forge was sent."""

    def __init__(self, forge: SimForge) -> None:
        self.texts: list[str] = []
        forge.before = self._hear

    def _hear(self, call: Call) -> None:
        self.texts.append(f"{call.path} {call.query} {call.body} {call.headers}")

    def knows(self, token: str) -> bool:
        return any(token in each for each in self.texts)


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    names = {
        name for each in DRIVERS for name in (*module_of(each).TOKENS, *module_of(each).SERVERS)
    }
    for name in (
        *names,
        *GENERAL,
        "GITHUB_REPOSITORY",
        "CI_PROJECT_URL",
        "BITBUCKET_REPO_FULL_NAME",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ours() -> Iterator[SimForge]:
    with served(SimGitHub()) as made:
        made.token = _OURS
        yield made


@pytest.fixture
def theirs() -> Iterator[SimForge]:
    with served(SimGitHub()) as made:
        made.token = _THEIRS
        yield made


def in_clone(forge: SimForge, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["init", "-q"], ["remote", "add", "origin", forge.repo]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    monkeypatch.chdir(folder)


def garbage(repo: str = "") -> tuple[list[runners.Orphan], list[str]]:
    told: list[str] = []

    def hear(event: Event) -> None:
        told.extend([event.message] if isinstance(event, Note) else [])

    return runners.garbage(driver="github", repo=repo, on_event=hear), told


def test_gc_sends_no_token_to_the_forge_of_a_clone_that_it_is_not_for(
    ours: SimForge, theirs: SimForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_clone(theirs, tmp_path, monkeypatch)
    heard = _Heard(theirs)
    remember(_OURS, ours.repo)  # as a launch does
    monkeypatch.setenv("CML_TOKEN", _OURS)
    monkeypatch.setenv("GITHUB_TOKEN", _OURS)
    found, told = garbage()
    assert not found
    assert heard.texts == []
    [note] = told
    assert (
        f"No token for {theirs.repo}: CML_TOKEN and GITHUB_TOKEN may be for another forge" in note
    )


def test_gc_asks_where_runners_were_launched_with_the_same_token(
    ours: SimForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_clone(ours, tmp_path, monkeypatch)
    heard = _Heard(ours)
    monkeypatch.setenv("CML_TOKEN", _OURS)
    assert garbage()[1]
    assert not heard.texts
    remember(_OURS, ours.repo)
    assert garbage() == ([], [])
    assert heard.knows(_OURS)


def test_gc_asks_the_repository_that_is_named(
    ours: SimForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = _Heard(ours)
    monkeypatch.setenv("CML_TOKEN", _OURS)
    garbage(ours.repo)
    assert heard.knows(_OURS)
    monkeypatch.delenv("CML_TOKEN")
    with pytest.raises(AuthError, match="No token for"):
        garbage(ours.repo)


def test_gc_asks_the_forge_whose_job_it_runs_in(
    ours: SimForge, theirs: SimForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_clone(theirs, tmp_path, monkeypatch)
    heard, other = _Heard(ours), _Heard(theirs)
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/widgets")
    monkeypatch.setenv("GITHUB_SERVER_URL", ours.url)
    monkeypatch.setenv("CML_TOKEN", _OURS)
    garbage()
    assert heard.knows(_OURS)
    assert other.texts == []


_JOB = {"GITHUB_REPOSITORY": "a/b", "GITHUB_SERVER_URL": "https://ghes.example"}
_GITEA_JOB = {**_JOB, "GITEA_ACTIONS": "true", "GITHUB_SERVER_URL": "https://gitea.example"}

_GITLAB_JOB, _GLAB = {"CI_SERVER_URL": "https://git.example"}, {"GITLAB_HOST": "git.example"}
_TEA = {"GITEA_SERVER_URL": "https://Gitea.Example:443/"}


@pytest.mark.parametrize(
    ("driver", "address", "environment", "sent"),
    [
        ("github", "https://github.com/a/b", {"GITHUB_TOKEN": "t"}, True),
        ("github", "https://ghes.example/a/b", {"GITHUB_TOKEN": "t"}, False),
        ("github", "https://ghes.example/a/b", {"GH_TOKEN": "t", "GH_HOST": "ghes.example"}, False),
        ("github", "https://ghes.example/a/b", {"GITHUB_TOKEN": "t", **_JOB}, True),
        ("github", "https://ghes.example:8443/a/b", {"GITHUB_TOKEN": "t", **_JOB}, False),
        ("github", "http://ghes.example/a/b", {"GITHUB_TOKEN": "t", **_JOB}, False),
        ("github", "https://github.com/a/b", {"GITHUB_TOKEN": "t", **_JOB}, False),
        ("github", "https://github.com/a/b", {"GITHUB_TOKEN": "t", **_GITEA_JOB}, False),
        ("gitlab", "https://gitlab.com/a/b", {"GITLAB_TOKEN": "t"}, True),
        ("gitlab", "https://git.example/a/b", {"GITLAB_TOKEN": "t"}, False),
        ("gitlab", "https://git.example/a/b", {"GITLAB_TOKEN": "t", **_GLAB}, True),
        ("gitlab", "https://git.example/a/b", {"GITLAB_TOKEN": "t", **_GITLAB_JOB}, True),
        ("gitlab", "https://gitlab.com/a/b", {"GITLAB_TOKEN": "t", **_GITLAB_JOB}, False),
        ("bitbucket", "https://bitbucket.org/a/b", {"BITBUCKET_TOKEN": "t"}, True),
        ("bitbucket", "https://mirror.example/a/b", {"BITBUCKET_TOKEN": "t"}, False),
        ("gitea", "https://gitea.example/a/b", {"GITEA_TOKEN": "t"}, False),
        ("gitea", "https://gitea.example/a/b", {"GITEA_TOKEN": "t", **_GITEA_JOB}, True),
        ("gitea", "https://gitea.example/a/b", {"GITEA_TOKEN": "t", **_TEA}, True),
        ("forgejo", "https://codeberg.org/a/b", {"FORGEJO_TOKEN": "t"}, True),
        ("forgejo", "https://git.example/a/b", {"FORGEJO_TOKEN": "t"}, False),
    ],
)  # fmt: skip
def test_the_variable_of_a_forge_is_for_one_server(
    driver: str, address: str, environment: dict[str, str], sent: bool
) -> None:
    assert find_token(driver, address, environment) == ("t" if sent else "")


def test_a_general_variable_is_for_a_repository_that_is_named() -> None:
    address, given = "https://git.example/a/b", {"REPO_TOKEN": "t"}
    assert find_token("gitlab", address, given) == "t"
    assert find_token("gitlab", address, given, named=False) == ""
    remember("t", address)
    assert find_token("gitlab", address, given, named=False) == "t"
    assert find_token("gitlab", "https://git.example:8443/a/b", given, named=False) == ""


def test_a_token_of_another_kind_of_forge_is_refused() -> None:
    with pytest.raises(AuthError, match="The token is one of github, not of gitlab"):
        find_target("", "https://gitlab.com/a/b", "", {"CML_TOKEN": "github_pat_secret"})
    with pytest.raises(AuthError, match="The token is one of gitlab, not of gitea"):
        find_target("gitea", "https://git.example/a/b", "glpat-secret", {})


def test_no_token_is_kept(tmp_path: Path) -> None:
    remember("secret", "https://github.com/a/b")
    remember("secret", "https://GitHub.com:443/c")
    remember("other", "http://127.0.0.1:3000/c/d")
    file = state_home() / "sojourn" / "forges.json"
    assert "secret" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert known_forges("secret") == {forge_of("github.com")}
    file.write_text(json.dumps({"x": 1, "y": [[]]}) + "]")
    assert known_forges("secret") == frozenset()
