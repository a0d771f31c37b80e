"""Runners of a real Gitea."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sojourn import runners
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Conflict, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.status import State
from sojourn.forges import open_forge
from tests.contract.clouds.local_kit import LocalKit
from tests.forge.gitea import Gitea, Repo
from tests.support.waiting import until


@contextmanager
def launched(repo: Repo, kit: LocalKit, /, **more: Any) -> Iterator[runners.Launched]:
    given = {"driver": "gitea", "repo": repo.url, "token": repo.gitea.token, "cloud": kit.cloud}
    made = runners.launch(**{**given, "single": False, "idle_timeout": 120, **more})
    assert made is not None
    try:
        yield made
    finally:
        if made.exists():
            made.remove(token=repo.gitea.token, force=True)


def until_over(repo: Repo, run: int, seconds: float = 60) -> Any:
    until(lambda: repo.run(run)["status"] == "completed", seconds)
    return repo.run(run)


def until_running(repo: Repo, run: int) -> None:
    until(lambda: repo.job(run)["status"] == "in_progress", 60)


def test_it_carries_out_jobs_and_is_gone_when_there_are_none(repo: Repo, kit: LocalKit) -> None:
    run = repo.push("echo hello from $GITHUB_RUN_ID\nexit 0")
    with launched(repo, kit, idle_timeout=5, token_on_machine=True) as runner:
        assert until_over(repo, run)["conclusion"] == "success"
        assert f"hello from {run}" in repo.log(run)
        assert repo.job(run)["runner_name"] in (runner.id, "")  # empty once it is gone
        until(lambda: runner.status().state.ended, 60)
        assert runner.status().state is State.SUCCEEDED
        assert runner.status().reason == "no job for 5s"
        assert repo.runners() == []


def test_it_is_launched_by_the_command_line(
    repo: Repo, kit: LocalKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CML_TOKEN", repo.gitea.token)
    run = repo.push("echo hello")
    options = ("--driver", "gitea", "--repo", repo.url, "--cloud", kit.cloud, "--labels", "cml,gpu")
    made = sojourn("runner", "launch", *options).split()[-1]
    assert until_over(repo, run)["conclusion"] == "success"
    assert {"cml", "gpu", made} == {
        each["name"] for each in repo.get("/actions/runners")["runners"][0]["labels"]
    }
    assert TaskId.parse(made).name in sojourn("runner", "list")
    sojourn("runner", "delete", made)
    assert repo.runners() == []


def sojourn(*arguments: str) -> str:
    program = Path(sys.executable).with_name("sojourn")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_that_fails_has_failed(repo: Repo, kit: LocalKit) -> None:
    with launched(repo, kit) as runner:
        run = repo.push("echo before\nexit 3", runner.id)
        assert until_over(repo, run)["conclusion"] == "failure"
        assert "before" in repo.log(run)
        assert runner.status().state is State.RUNNING


def test_one_for_a_single_job_is_gone_after_it(repo: Repo, kit: LocalKit) -> None:
    with launched(repo, kit, single=True) as runner:
        (row,) = repo.get("/actions/runners")["runners"]
        assert row["ephemeral"]
        first = repo.push("echo first")
        until_running(repo, first)
        second = repo.push("echo second")
        assert until_over(repo, first)["conclusion"] == "success"
        until(lambda: runner.status().state.ended, 60)
        assert runner.status().state is State.SUCCEEDED
        assert repo.runners() == []
        assert repo.run(second)["status"] == "queued"


def test_one_with_a_job_is_not_deleted_nor_idle(repo: Repo, kit: LocalKit) -> None:
    run = repo.push("sleep 20")
    with launched(repo, kit, idle_timeout=5, token_on_machine=True) as runner:
        until_running(repo, run)
        assert open_forge("gitea", repo.url, repo.gitea.token).runners(Context())[0].busy
        with pytest.raises(Conflict, match="is running a job"):
            runner.remove(token=repo.gitea.token)
        # It may have the next job, too.
        assert not repo.get("/actions/runners")["runners"][0]["disabled"]
        assert until_over(repo, run)["conclusion"] == "success"


def test_a_job_that_was_lost_is_run_again(repo: Repo, kit: LocalKit) -> None:
    with launched(repo, kit, token_on_machine=True) as runner:
        run = repo.push("sleep 12\necho done")
        until_running(repo, run)
        # One that began at the same moment as the next machine may be that machine's own.
        started = datetime.fromisoformat(repo.job(run)["started_at"].replace("Z", "+00:00"))
        until(lambda: datetime.now(timezone.utc) - started > timedelta(seconds=4))
        assert any((kit._root / "cache").rglob("workdir/busy"))
        kit.lose_agent(runner, 0)
        until(lambda: repo.job(run)["run_attempt"] == 2, 120)
        assert until_over(repo, run, 120)["conclusion"] == "success"
        assert repo.runners() == [runner.id]


def test_runners_of_an_organization_serve_its_repositories(gitea: Gitea, kit: LocalKit) -> None:
    name = f"acme-{uuid.uuid4().hex[:8]}"
    address = gitea.organization(name)
    repo = gitea.repo("widgets", organization=name)
    run = repo.push("echo hello")
    with launched(repo, kit, repo=address, idle_timeout=5, token_on_machine=True) as runner:
        assert until_over(repo, run)["conclusion"] == "success"
        until(lambda: runner.status().state.ended, 60)
        assert gitea.call("GET", f"/orgs/{name}/actions/runners")["runners"] == []


def test_runners_of_a_user_serve_its_repositories(gitea: Gitea, repo: Repo, kit: LocalKit) -> None:
    with launched(repo, kit, repo=f"{gitea.url}/{gitea.owner}") as runner:
        run = repo.push("echo hello", runner.id)
        assert until_over(repo, run)["conclusion"] == "success"


def test_what_is_public_is_told(gitea: Gitea) -> None:
    public = gitea.repo(f"public-{uuid.uuid4().hex[:8]}", public=True)
    private = gitea.repo(f"private-{uuid.uuid4().hex[:8]}")
    for repo in (public, private):
        forge = open_forge("gitea", repo.url, gitea.token)
        assert forge.check(Context()).public is (repo is public)


def test_a_wrong_token_and_a_wrong_name_are_told_apart(gitea: Gitea, repo: Repo) -> None:
    with pytest.raises(AuthError, match="rejected the token"):
        open_forge("gitea", repo.url, "0" * 40).check(Context())
    with pytest.raises(NotFound, match="not visible to the token"):
        open_forge("gitea", f"{gitea.url}/{gitea.owner}/nowhere", gitea.token).check(Context())
    with pytest.raises(NotFound, match="not visible to the token"):
        open_forge("gitea", f"{gitea.url}/nobody", gitea.token).check(Context())


def test_unregistering_what_is_gone_does_nothing(repo: Repo) -> None:
    assert open_forge("gitea", repo.url, repo.gitea.token).unregister(Context(), "999999")
