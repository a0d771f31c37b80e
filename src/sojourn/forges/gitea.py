"""Gitea. The runner is registered here, so that its machine never has the registration token:
that one is good for ever, and for any number of runners."""

from __future__ import annotations

import json
import os
import time
import urllib.parse
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound
from sojourn.core.runner import Program
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.http import Answer, Http, published_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Runner

__all__ = ["HOSTS", "TOKENS", "Driver", "repo_here"]

HOSTS = ("gitea.com", "codeberg.org")  # the second runs Forgejo: so users are told
TOKENS = ("GITEA_TOKEN",)  # variables that may have one
VERSION = "3.5.0"  # of https://gitea.com/gitea/runner
SOURCE = "https://dl.gitea.com/gitea-runner"
_MIRROR = "SOJOURN_RUNNER_SOURCE_GITEA"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_API = "/api/v1"
_PROTOCOL = "/api/actions/runner.v1.RunnerService"
_PAGE = 50  # the most that Gitea sends, unless its administrator says otherwise
_PAGES = 1000
_LOST = "RESULT_CANCELLED"
_LOOK_EVERY = 5.0
_RIGHTS = (
    "The token's user must own the repository or organization, and the token needs the scope "
    "write:repository (write:organization or write:user for runners of an owner)."
)
_BY_HAND = "re-run it by hand if it failed"


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose CI this program runs in; none: empty."""
    name = environment.get("GITHUB_REPOSITORY", "")
    ours = environment.get("GITEA_ACTIONS") or environment.get("FORGEJO_ACTIONS")
    server = environment.get("GITHUB_SERVER_URL", "").rstrip("/")
    return f"{server}/{name}" if name and ours and server else ""


class Driver:
    """A repository, an organization or a user, by its address."""

    limits = (
        "Gitea ends jobs after 3 hours, and drops jobs that wait 24 hours for a runner, unless "
        "its administrator set ENDLESS_TASK_TIMEOUT and ABANDONED_JOB_TIMEOUT."
    )

    def __init__(self, repo: str, token: str) -> None:
        address = urllib.parse.urlsplit(repo)
        parts = [part for part in address.path.removesuffix(".git").split("/") if part]
        if not parts:
            raise InvalidInput(
                "repo", f"must be like https://{HOSTS[0]}/OWNER/REPO or .../ORGANIZATION: {repo!r}"
            )
        # What comes before is the path that the whole of Gitea is at.
        self._parts = parts[-2:]
        self._token = token
        self._base = "/".join([f"{address.scheme}://{address.netloc}", *parts[:-2]])
        self._http = Http(self._base, {"Authorization": f"token {token}"} if token else {})
        self._found_scope = ""

    def check(self, ctx: Context) -> Repository:
        self._refuse_forgejo(ctx)
        try:
            scope = self._scope(ctx)
            found = self._http.call(ctx, "GET", scope).json
            self._registration_token(ctx)  # there is no other way to learn that it is allowed
        except NotFound as error:  # Gitea does not tell of what the token may not see
            raise NotFound(
                f"{'/'.join(self._parts)} not found on {self._http.host}, or not visible to the "
                "token",
                hint=_RIGHTS,
            ) from error
        except AuthError as error:
            error.hint = error.hint or _RIGHTS
            raise
        return Repository(public=len(self._parts) == 2 and not found.get("private", False))

    def _refuse_forgejo(self, ctx: Context) -> None:
        allow = (400, 401, 403, 404, 405)
        answer = self._http.call(ctx, "GET", "/api/forgejo/v1/version", allow=allow)
        if answer.status < 300:
            raise InvalidInput(
                "driver",
                f"{self._http.host} runs Forgejo, whose API for runners is not that of Gitea and "
                "is not supported",
            )

    def _scope(self, ctx: Context) -> str:
        """What the paths of the API begin with. One name is that of an organization or a user."""
        if len(self._parts) == 2:
            return f"{_API}/repos/{'/'.join(self._parts)}"
        if not self._found_scope:
            (name,) = self._parts
            found = self._http.call(ctx, "GET", f"{_API}/orgs/{name}", allow=(404,))
            self._found_scope = f"{_API}/orgs/{name}" if found.status < 300 else self._own(ctx)
        return self._found_scope

    def _own(self, ctx: Context) -> str:
        """Runners of a user are registered by nobody else."""
        found = self._http.call(ctx, "GET", f"{_API}/user").json
        if found["login"].lower() != self._parts[0].lower():
            raise NotFound(f"no organization {self._parts[0]}, and the token is another user's")
        return f"{_API}/user"

    def _runners(self, ctx: Context) -> str:
        return f"{self._scope(ctx)}/actions/runners"

    def _registration_token(self, ctx: Context) -> str:
        """The one that is there, or a new one: asking again changes nothing."""
        path = f"{self._runners(ctx)}/registration-token"
        return str(self._http.call(ctx, "POST", path).json["token"])

    def programs(self, ctx: Context) -> dict[str, Program]:
        source = os.environ.get(_MIRROR, SOURCE).rstrip("/")
        urls = {
            machine: f"{source}/{VERSION}/gitea-runner-{VERSION}-linux-{name}"
            for machine, name in _ARCHITECTURES.items()
        }
        return {
            machine: Program(VERSION, url, published_sum(ctx, f"{url}.sha256"))
            for machine, url in urls.items()
        }

    def register(self, ctx: Context, runner: Runner) -> Registration:
        for label in runner.labels:
            if ":" in label:
                raise InvalidInput("labels", f"must not contain ':' for Gitea, got {label!r}")
        body = {
            "name": runner.name,
            "token": self._registration_token(ctx),
            "version": VERSION,
            "labels": list(runner.all_labels),
            "ephemeral": runner.single,
        }
        made = self._http.call(ctx, "POST", f"{_PROTOCOL}/Register", body=body).json["runner"]
        made_id = int(made["id"])
        # One that was made by a call whose answer was lost.
        for each in self._listed(ctx):
            if runner.task in _labels(each) and each["id"] != made_id:
                self._delete(ctx, str(each["id"]))
        kept = {
            "id": made_id,
            "uuid": made["uuid"],
            "name": runner.name,
            "token": made["token"],
            "address": self._base,
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
        return self._pages(ctx, self._runners(ctx), "runners")

    def _busy(self, ctx: Context) -> set[int]:
        return {each.get("runner_id", 0) for each in self._in_progress(ctx)}

    def _in_progress(self, ctx: Context) -> Iterator[dict[str, Any]]:
        path = f"{self._scope(ctx)}/actions/jobs"
        return self._pages(ctx, path, "jobs", {"status": "in_progress"})

    def _pages(
        self, ctx: Context, path: str, key: str, more: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        seen: set[int] = set()
        for page in range(1, _PAGES + 1):
            query = {**(more or {}), "limit": str(_PAGE), "page": str(page)}
            answer = self._http.call(ctx, "GET", path, query=query).json
            found = answer[key] or []
            # What was there on the page before may have moved on to this one.
            yield from (each for each in found if each["id"] not in seen)
            seen.update(each["id"] for each in found)
            if not found or len(seen) >= answer["total_count"]:
                return

    def unregister(self, ctx: Context, id: str) -> bool:
        """Gitea deletes a runner with a job, too: so it gets no more jobs before we look."""
        self._disable(ctx, id, disabled=True)
        if int(id) in self._busy(ctx):
            self._disable(ctx, id, disabled=False)
            return False
        self._delete(ctx, id)
        return True

    def _disable(self, ctx: Context, id: str, *, disabled: bool) -> Answer:
        path = f"{self._runners(ctx)}/{id}"
        allow = (404, 405)  # is gone; Gitea before 1.26
        return self._http.call(ctx, "PATCH", path, body={"disabled": disabled}, allow=allow)

    def _delete(self, ctx: Context, id: str) -> None:
        self._http.call(ctx, "DELETE", f"{self._runners(ctx)}/{id}", allow=(404,))

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        if not self._token:
            raise AuthError("only a token of the repository's owner can remove a runner")
        return self.unregister(ctx, str(_registration(credentials)["id"]))

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """The machine cannot tell its run; `rerun` finds it."""
        return job

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        """All that began before this machine did was lost. The machine cannot tell its run."""
        own, now = _registration(credentials), self._time(ctx)
        lost = [
            each
            for each in self._in_progress(ctx)
            if each.get("runner_id") == own["id"] and _started(each) < now
        ]
        if not lost:
            raise NotFound(f"{runner.name} has no job in progress any more; {_BY_HAND}")
        done = [self._run_again(ctx, each, own) for each in lost]
        return any(done)

    def _time(self, ctx: Context) -> float:
        """When we asked, by Gitea's clock, which may not be ours; in whole seconds."""
        start = time.monotonic()
        said = self._http.call(ctx, "GET", f"{_API}/version").headers.get("Date", "")
        now = parsedate_to_datetime(said).timestamp()
        return now - (time.monotonic() - start)

    def _run_again(self, ctx: Context, job: dict[str, Any], own: Mapping[str, Any]) -> bool:
        repo = _API + urllib.parse.urlsplit(job["url"]).path.rpartition(_API)[2]
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
        identity = {"x-runner-uuid": own["uuid"], "x-runner-token": own["token"]}
        protocol = Http(self._base, identity)
        for task in self._pages(ctx, f"{repo}/actions/tasks", "workflow_runs"):
            if task["status"] != "running":
                continue
            if (task["run_number"], task["name"]) == (number, job["name"]):
                stopped = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                state = {"id": str(task["id"]), "result": _LOST, "stoppedAt": stopped}
                protocol.call(ctx, "POST", f"{_PROTOCOL}/UpdateTask", body={"state": state})
                return

    def may_travel(self) -> bool:
        """Nobody can ask what a token is for, and the one of a running job is for too little."""
        return False


def _labels(row: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(label["name"] for label in row["labels"] or [])


def _started(job: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(job["started_at"].replace("Z", "+00:00")).timestamp()


def _registration(credentials: Mapping[str, str]) -> Any:
    return json.loads(credentials["registration"])
