"""Gitea. The runner is registered here, so that its machine never has the registration token:
that one is good for ever, and for any number of runners."""

from __future__ import annotations

import json
import os
import urllib.parse
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Conflict, NotFound
from sojourn.forges import giteas
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.giteas import API, PROTOCOL, actual, refuse_colons
from sojourn.forges.owner import require_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Program, Runner
    from sojourn.forges.http import Answer

__all__ = ["HOSTS", "SERVERS", "TOKENS", "Driver", "actual", "repo_here"]

HOSTS = ("gitea.com",)
TOKENS = ("GITEA_TOKEN",)  # variables that may have one
SERVERS = ("GITEA_SERVER_URL",)  # and those that say whose it is, if it is not one of HOSTS
VERSION = "3.5.0"  # of https://gitea.com/gitea/runner
SOURCE = "https://dl.gitea.com/gitea-runner"
_MIRROR = "SOJOURN_RUNNER_SOURCE_GITEA"
_LOOK_EVERY = 5.0
_BY_HAND = "re-run it by hand if it failed"


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose CI this program runs in; none: empty."""
    ours = environment.get("GITEA_ACTIONS") and not environment.get("FORGEJO_ACTIONS")
    return giteas.repo_here(environment) if ours else ""


class Driver(giteas.Driver):
    """A repository, an organization or a user, by its address."""

    limits = (
        "Gitea ends jobs after 3 hours, and drops jobs that wait 24 hours for a runner, unless "
        "its administrator set ENDLESS_TASK_TIMEOUT and ABANDONED_JOB_TIMEOUT."
    )

    def check(self, ctx: Context) -> Repository:
        with self._place.explained():
            public = self._place.is_public(ctx)
            self._registration_token(ctx)  # there is no other way to learn that it is allowed
        return Repository(public)

    def _registration_token(self, ctx: Context) -> str:
        """The one that is there, or a new one: asking again changes nothing."""
        path = f"{self._place.runners(ctx)}/registration-token"
        return str(self._http.call(ctx, "POST", path).json["token"])

    def programs(self, ctx: Context) -> dict[str, Program]:
        source = os.environ.get(_MIRROR, SOURCE).rstrip("/")
        url = f"{source}/{VERSION}/gitea-runner-{VERSION}-linux-{{}}"
        return giteas.published(ctx, VERSION, url)

    def register(self, ctx: Context, runner: Runner) -> Registration:
        refuse_colons(runner.labels, "Gitea")
        body = {
            "name": runner.name,
            "token": self._registration_token(ctx),
            "version": VERSION,
            "labels": list(runner.all_labels),
            "ephemeral": runner.single,
        }
        made = self._http.call(ctx, "POST", f"{PROTOCOL}/Register", body=body).json["runner"]
        made_id = int(made["id"])
        # One that was made by a call whose answer was lost.
        for each in self._listed(ctx):
            if runner.task in _labels(each) and each["id"] != made_id:
                self._place.delete(ctx, str(each["id"]))
        kept = {
            "id": made_id,
            "uuid": made["uuid"],
            "name": runner.name,
            "token": made["token"],
            "address": self._place.base,
            # Jobs run on the machine, unless they name a container.
            "labels": [f"{label}:host" for label in runner.all_labels],
            "ephemeral": bool(made.get("ephemeral")),
        }
        return Registration(str(made_id), {"registration": json.dumps(kept)})

    def runners(self, ctx: Context) -> list[Registered]:
        rows = list(self._listed(ctx))
        # Gitea calls a runner busy that has said something of a job in the last 10 seconds.
        busy = self._busy(ctx) if rows else set()
        return [
            Registered(
                str(each["id"]),
                each["name"],
                each["status"] == "online",
                each["id"] in busy,
                _labels(each),
            )
            for each in rows
        ]

    def _listed(self, ctx: Context) -> Iterator[dict[str, Any]]:
        return self._place.pages(ctx, self._place.runners(ctx), "runners")

    def _busy(self, ctx: Context) -> set[int]:
        return {each.get("runner_id", 0) for each in self._in_progress(ctx)}

    def _in_progress(self, ctx: Context) -> Iterator[dict[str, Any]]:
        path = f"{self._place.scope(ctx)}/actions/jobs"
        return self._place.pages(ctx, path, "jobs", {"status": "in_progress"})

    def unregister(self, ctx: Context, id: str) -> bool:
        """Gitea deletes a runner with a job, too: so it gets no more jobs before we look."""
        self._disable(ctx, id, disabled=True)
        if int(id) in self._busy(ctx):
            self._disable(ctx, id, disabled=False)
            return False
        self._place.delete(ctx, id)
        return True

    def _disable(self, ctx: Context, id: str, *, disabled: bool) -> Answer:
        path = f"{self._place.runners(ctx)}/{id}"
        allow = (404, 405)  # is gone; Gitea before 1.26
        return self._http.call(ctx, "PATCH", path, body={"disabled": disabled}, allow=allow)

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        require_token(self._token)
        return self.unregister(ctx, str(_registration(credentials)["id"]))

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """All that this runner has in progress, before our own program has anything: the machine
        cannot tell its run."""
        own = {each["id"] for each in self._listed(ctx) if runner.task in _labels(each)}
        found = [str(e["id"]) for e in self._in_progress(ctx) if e.get("runner_id") in own]
        if not found:
            raise NotFound(f"{runner.name} has no job in progress any more; {_BY_HAND}")
        return Job("", ",".join(found))

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        own, lost = _registration(credentials), job.attempt.split(",")
        jobs = [each for each in self._in_progress(ctx) if str(each["id"]) in lost]
        done = [self._run_again(ctx, each, own) for each in jobs]
        return any(done)

    def _run_again(self, ctx: Context, job: dict[str, Any], own: Mapping[str, Any]) -> bool:
        repo = API + urllib.parse.urlsplit(job["url"]).path.rpartition(API)[2]
        repo = repo.partition("/actions/")[0]
        run = f"{repo}/actions/runs/{job['run_id']}"
        self._give_up(ctx, repo, self._http.call(ctx, "GET", run).json["run_number"], job, own)
        # A run that is not over cannot be repeated; its other jobs go on until then.
        while (now := self._http.call(ctx, "GET", run).json)["status"] != "completed":
            ctx.sleep(_LOOK_EVERY)
        if now.get("conclusion") == "success":
            return False
        answer = self._http.call(ctx, "POST", f"{run}/rerun-failed-jobs", allow=(404, 405))
        if answer.status >= 300:
            raise Conflict(f"{self._http.host} is older than Gitea 1.26; {_BY_HAND}")
        return True

    def _give_up(
        self, ctx: Context, repo: str, number: int, job: dict[str, Any], own: Mapping[str, Any]
    ) -> None:
        """Gitea would notice after 10 minutes or more; the runner that has the job may say so."""
        for task in self._place.pages(ctx, f"{repo}/actions/tasks", "workflow_runs"):
            if task["status"] != "running":
                continue
            if (task["run_number"], task["name"]) == (number, job["name"]):
                self._end(ctx, str(task["id"]), own)
                return


def _labels(row: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(label["name"] for label in row["labels"] or [])


def _registration(credentials: Mapping[str, str]) -> Any:
    return json.loads(credentials["registration"])
