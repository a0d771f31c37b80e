"""Forgejo, from version 15 on. It registers runners by its API; its program has no metrics, and no
hooks, but a mode for one job whose exit code tells whether there was any."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Conflict, InvalidInput, NotFound, Transient
from sojourn.core.ids import TaskId
from sojourn.forges import giteas
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.giteas import actual, refuse_colons
from sojourn.forges.http import made_once
from sojourn.forges.owner import require_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Program, Runner

__all__ = ["HOSTS", "SERVERS", "TOKENS", "Driver", "actual", "repo_here"]

HOSTS = ("codeberg.org", "code.forgejo.org")
TOKENS = ("FORGEJO_TOKEN",)  # variables that may have one
SERVERS = ("FORGEJO_SERVER_URL",)  # and those that say whose it is, if it is not one of HOSTS
VERSION = "13.2.0"  # of https://code.forgejo.org/forgejo/runner
SOURCE = "https://code.forgejo.org/forgejo/runner/releases/download"
_MIRROR = "SOJOURN_RUNNER_SOURCE_FORGEJO"
_NOTHING_ASKED = (400, 422)  # what it answers to a registration without a name
_NOT_OURS = "invalid runner for task"
_NOT_OVER = ("waiting", "running", "blocked", "unknown")
_LOOK_EVERY = 5.0


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose CI this program runs in; none: empty."""
    return giteas.repo_here(environment) if environment.get("FORGEJO_ACTIONS") else ""


class Driver(giteas.Driver):
    """A repository, an organization or a user, by its address."""

    limits = (
        "Forgejo ends jobs after 3 hours, and drops jobs that wait 24 hours for a runner, unless "
        "its administrator set ENDLESS_TASK_TIMEOUT and ABANDONED_JOB_TIMEOUT."
    )

    def check(self, ctx: Context) -> Repository:
        with self._place.explained():
            public = self._place.is_public(ctx)
            # One without a name is not made, and tells whether the token could.
            path, allow = self._place.runners(ctx), (*_NOTHING_ASKED, 405)
            answer = self._http.call(ctx, "POST", path, body={}, allow=allow)
        if answer.status == 405:
            raise InvalidInput(
                "driver", f"{self._http.host} is older than Forgejo 15, which is needed for runners"
            )
        return Repository(public)

    def programs(self, ctx: Context) -> dict[str, Program]:
        source = os.environ.get(_MIRROR, SOURCE).rstrip("/")
        url = f"{source}/v{VERSION}/forgejo-runner-{VERSION}-linux-{{}}"
        return giteas.published(ctx, VERSION, url)

    def register(self, ctx: Context, runner: Runner) -> Registration:
        refuse_colons(runner.labels, "Forgejo")
        # It has no labels before its program tells them: so the task is in its description.
        body = {"name": runner.name, "description": runner.task, "ephemeral": runner.single}
        path = self._place.runners(ctx)
        made = made_once(
            ctx,
            lambda: self._http.call(ctx, "POST", path, body=body, tries=1).json,
            lambda: self._remove(ctx, runner),
        )
        own = {"url": f"{self._place.base}/", "uuid": made["uuid"], "token": made["token"]}
        # Jobs run on the machine, unless they name a container.
        labels = [f"{label}:host" for label in runner.all_labels]
        kept = {"number": str(made["id"]), "connection": json.dumps(own)}
        return Registration(str(made["id"]), {**kept, "host_labels": json.dumps(labels)})

    def _remove(self, ctx: Context, runner: Runner) -> None:
        for each in self.runners(ctx):
            if runner.task in each.labels:
                self._place.delete(ctx, each.id)

    def runners(self, ctx: Context) -> list[Registered]:
        return [
            Registered(
                str(each["id"]),
                each["name"],
                each["status"] != "offline",
                each["status"] == "active",
                _labels(each),
            )
            for each in self._place.rows(ctx, self._place.runners(ctx))
        ]

    def unregister(self, ctx: Context, id: str) -> bool:
        """Forgejo deletes a runner with a job, too, and has no way to give it no more before."""
        if any(each.id == id and each.busy for each in self.runners(ctx)):
            return False
        self._place.delete(ctx, id)
        return True

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        """Its program has ended before."""
        require_token(self._token)
        self._place.delete(ctx, credentials["number"])
        return True

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """The run is that of the job's environment; its tasks are those that may have been lost,
        before our own program has one of them."""
        if not job.run.isdecimal() or not self._place.is_repository:
            raise NotFound("a job was lost, and this machine cannot tell which; re-run it by hand")
        run = self._http.call(ctx, "GET", self._run(ctx, job.run)).json
        path, query = f"{self._place.scope(ctx)}/actions/tasks", {"status": "running"}
        rows = self._place.pages(ctx, path, "workflow_runs", query)
        tasks = [str(row["id"]) for row in rows if row["run_number"] == run["index_in_repo"]]
        return Job(job.run, ",".join(tasks)) if tasks else None

    def _run(self, ctx: Context, number: str) -> str:
        return f"{self._place.scope(ctx)}/actions/runs/{number}"

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        """Forgejo does not tell which runner has a task, but refuses what a stranger says of it."""
        own = json.loads(credentials["connection"])
        jobs = self._jobs(ctx)
        lost = [task for task in job.attempt.split(",") if self._give_up(ctx, task, own)]
        again = [jobs[task] for task in lost if task in jobs]
        if not again:
            return False
        # A run that is not over cannot be repeated; its other jobs go on until then.
        while self._http.call(ctx, "GET", self._run(ctx, job.run)).json["status"] in _NOT_OVER:
            ctx.sleep(_LOOK_EVERY)
        for number in again:
            path = f"{self._place.scope(ctx)}/actions/jobs/{number}/rerun"
            if self._http.call(ctx, "POST", path, allow=(404, 405)).status >= 300:
                raise Conflict(f"{self._http.host} is older than Forgejo 17; re-run it by hand")
        return True

    def _jobs(self, ctx: Context) -> dict[str, str]:
        """Those that run, by their tasks."""
        path = f"{self._place.scope(ctx)}/actions/runners/jobs"
        found = self._http.call(ctx, "GET", path).json or []
        return {str(each["task_id"]): str(each["id"]) for each in found}

    def _give_up(self, ctx: Context, task: str, own: Mapping[str, str]) -> bool:
        """Forgejo would notice after 10 minutes; the runner that has the task may say so."""
        try:
            self._end(ctx, task, own, tries=2)
        except (NotFound, Transient) as error:  # a refusal is like a failure of its own, but for
            if isinstance(error, Transient) and _NOT_OURS not in error.message:  # what it says
                raise
            return False
        return True


def _labels(row: Mapping[str, Any]) -> frozenset[str]:
    said = str(row.get("description") or "")
    return frozenset((*(row["labels"] or []), *([said] if TaskId.looks_like(said) else [])))
