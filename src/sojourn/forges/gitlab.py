"""GitLab.com, and GitLab on a host of its own."""

from __future__ import annotations

import datetime
import os
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.core.runner import Program
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.http import Http, made_once
from sojourn.forges.owner import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Runner
    from sojourn.forges.http import Answer

__all__ = ["HOSTS", "OPTIONS", "PREFIXES", "SERVERS", "TOKENS", "Driver", "repo_here"]

HOSTS = ("gitlab.com",)
TOKENS = ("GITLAB_TOKEN",)  # the token of a job, CI_JOB_TOKEN, cannot register runners
SERVERS = ("GITLAB_HOST", "GL_HOST", "CI_SERVER_URL")  # whose it is, if it is not one of HOSTS
PREFIXES = ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glagent-")
OPTIONS = ("docker_volumes",)

# The version is ours, so that all runners are alike. The checksum is the one that the vendor
# publishes beside exactly this version: it is looked up at each launch, before anything is made.
_VERSION = "v18.11.3"
_SOURCE = "https://gitlab-runner-downloads.s3.amazonaws.com"
_MIRROR = "SOJOURN_RUNNER_SOURCE_GITLAB"  # a variable: another place with the same files
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}

_PAGE = 100
_PAGES = 100
_LOOK_EVERY = 5.0
_OVER_WITHIN = 15 * 60.0  # seconds
_FORCE_AFTER = 30.0  # seconds for a machine to tell that it cancelled a job; a lost one never does
_BRIEF = datetime.timedelta(days=1)
_MAY_REGISTER = frozenset(("api", "create_runner"))
_HARMLESS = frozenset(("create_runner", "manage_runner"))
_LOSSES = frozenset(("runner_system_failure", "stuck_or_timeout_failure"))
_OWN = re.compile(r"(?P<name>.*) \[(?P<task>tpi-[a-z0-9-]+)\]")
_RIGHTS = (
    "The token needs the `api` scope and the Maintainer role in the project, or the Owner role in "
    "the group."
)


def repo_here(environment: Mapping[str, str]) -> str:
    """The project whose CI this program runs in; none: empty."""
    return environment.get("CI_PROJECT_URL", "")


class Driver:
    """A project or a group, by its address."""

    limits = "GitLab ends jobs after their project's timeout, one hour unless it was changed."

    def __init__(self, repo: str, token: str) -> None:
        address = urllib.parse.urlsplit(repo)
        self._parts = names_in(repo)
        if not self._parts:
            raise InvalidInput(
                "repo", f"must be like https://{HOSTS[0]}/GROUP/PROJECT or .../GROUP: {repo!r}"
            )
        self._site = f"{address.scheme}://{address.netloc}"
        self._token = token
        self._http = self._at("" if address.netloc in HOSTS else None)
        self._owner = ""  # such as /projects/7; found when it is asked for
        self._tags: dict[str, frozenset[str]] = {}
        self._scopes: frozenset[str] = frozenset()
        self._brief = False

    def _at(self, prefix: str | None) -> Http | None:
        if prefix is None:
            return None
        headers = {"PRIVATE-TOKEN": self._token} if self._token else {}
        return Http(f"{self._site}{prefix}/api/v4", headers)

    def _api(self, ctx: Context) -> Http:
        """GitLab can be anywhere below its host: /gitlab/group/project."""
        if self._http:
            return self._http
        for length in range(len(self._parts)):
            prefix = "".join(f"/{part}" for part in self._parts[:length])
            http = self._at(prefix)
            assert http is not None  # noqa: S101 -- it has a prefix
            refused = (400, 401, 403, 404, 405, 406, 410)
            answer = http.call(ctx, "GET", "/version", allow=refused)
            # What may not be asked is there, too; a page of another site is no JSON.
            if isinstance(answer.json, dict) and answer.status in (200, 401, 403):
                if answer.status == 401:
                    raise _rejected(http, answer)
                self._http, self._parts = http, self._parts[length:]
                return http
        raise NotFound(
            f"No GitLab found at {self._site}", hint="Check the address, and the driver."
        )

    def check(self, ctx: Context) -> Repository:
        try:
            found = self._find(ctx)
            self._look_at_token(ctx)
            self._api(ctx).call(ctx, "GET", f"{self._owner}/runners", query={"per_page": "1"})
        except AuthError as error:
            error.hint = error.hint or _RIGHTS
            raise
        public = found.get("visibility") == "public"
        return Repository(public=public and self._owner.startswith("/projects/"))

    def _find(self, ctx: Context) -> dict[str, Any]:
        http = self._api(ctx)
        path = urllib.parse.quote("/".join(self._parts), safe="")
        for kind in ("projects", "groups"):
            answer = http.call(ctx, "GET", f"/{kind}/{path}", allow=(404,))
            if answer.status != 404:
                self._owner = f"/{kind}/{answer.json['id']}"
                return dict(answer.json)
        raise NotFound(  # GitLab does not tell of what the token may not see
            f"{'/'.join(self._parts)} not found on {http.host}, or not visible to the token",
            hint=_RIGHTS,
        )

    def _look_at_token(self, ctx: Context) -> None:
        """What it can do, and for how long; not all kinds of tokens tell."""
        path = "/personal_access_tokens/self"
        answer = self._api(ctx).call(ctx, "GET", path, allow=(400, 401, 403, 404))
        if answer.status >= 300:
            return
        self._scopes = frozenset(answer.json.get("scopes", ()))
        self._brief = _is_brief(answer.json.get("expires_at"))
        if not self._scopes & _MAY_REGISTER:
            raise AuthError(
                f"{self._api(ctx).host} denied access: the token has the scopes "
                f"{', '.join(sorted(self._scopes)) or 'none'}"
            )

    def _owned(self, ctx: Context) -> str:
        if not self._owner:
            self._find(ctx)
        return self._owner

    def programs(self, ctx: Context) -> dict[str, Program]:
        base = f"{os.environ.get(_MIRROR, _SOURCE).rstrip('/')}/{_VERSION}"
        sums = _sums(Http(base, {}).call(ctx, "GET", "/release.sha256").data.decode())
        names = {each: f"binaries/gitlab-runner-linux-{each}" for each in _ARCHITECTURES}
        return {
            _ARCHITECTURES[each]: Program(_VERSION, f"{base}/{name}", sums[name])
            for each, name in names.items()
            if name in sums
        }

    def register(self, ctx: Context, runner: Runner) -> Registration:
        return made_once(ctx, lambda: self._made(ctx, runner), lambda: self._remove(ctx, runner))

    def _made(self, ctx: Context, runner: Runner) -> Registration:
        kind, _, number = self._owned(ctx).strip("/").partition("s/")
        body = {
            "runner_type": f"{kind}_type",
            f"{kind}_id": int(number),
            "description": _description(runner),
            "tag_list": list(runner.all_labels),
            "run_untagged": False,  # a job that names no label wants no such machine
            "locked": True,
            "access_level": "not_protected",
            "maintenance_note": f"Launched by sojourn as {runner.task}",
        }
        if kind == "group":
            del body["locked"]  # only those of projects can be
        http = self._api(ctx)
        made = http.call(ctx, "POST", "/user/runners", body=body, tries=1).json
        site = http.base.removesuffix("/api/v4")
        return Registration(str(made["id"]), {"runner_token": made["token"], "gitlab_url": site})

    def _remove(self, ctx: Context, runner: Runner) -> None:
        for each in self._listed(ctx):
            if _own(each["description"])[1] == runner.task:
                self._api(ctx).call(ctx, "DELETE", f"/runners/{each['id']}", allow=(404,))

    def runners(self, ctx: Context) -> list[Registered]:
        return [self._registered(ctx, each) for each in self._listed(ctx)]

    def _listed(self, ctx: Context) -> Iterator[dict[str, Any]]:
        owner = self._owned(ctx)
        kind = "project_type" if owner.startswith("/projects/") else "group_type"
        return self._pages(ctx, f"{owner}/runners", {"type": kind})

    def _pages(self, ctx: Context, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            asked = {**query, "per_page": str(_PAGE), "page": str(page)}
            found = self._api(ctx).call(ctx, "GET", path, query=asked).json
            yield from found
            if len(found) < _PAGE:
                return

    def _registered(self, ctx: Context, each: Mapping[str, Any]) -> Registered:
        """Lists have no tags. Those that are offline are no use but to be recognised."""
        number, online = str(each["id"]), each["status"] == "online"
        name, task = _own(each["description"])
        labels = self._labels(ctx, number) if online else frozenset()
        busy = self._busy(ctx, each) if online else False
        return Registered(number, name, online, busy, labels | ({task} if task else set()))

    def _labels(self, ctx: Context, id: str) -> frozenset[str]:
        if id not in self._tags:  # they hardly ever change
            answer = self._api(ctx).call(ctx, "GET", f"/runners/{id}", allow=(404,))
            self._tags[id] = frozenset((answer.json or {}).get("tag_list", ()))
        return self._tags[id]

    def _busy(self, ctx: Context, each: Mapping[str, Any]) -> bool:
        status = each.get("job_execution_status")  # newer versions tell in the list
        return status == "active" if status else bool(self._running(ctx, str(each["id"])))

    def _running(self, ctx: Context, id: str) -> list[dict[str, Any]]:
        path, query = f"/runners/{id}/jobs", {"status": "running"}
        try:
            return list(self._pages(ctx, path, query))
        except NotFound:  # removed meanwhile
            return []

    def unregister(self, ctx: Context, id: str) -> bool:
        """GitLab would remove it with its job: so it gets no more before we look for one."""
        path = f"/runners/{id}"
        http = self._api(ctx)
        if http.call(ctx, "PUT", path, body={"paused": True}, allow=(404,)).status == 404:
            return True
        if self._running(ctx, id):
            http.call(ctx, "PUT", path, body={"paused": False}, allow=(404,))
            return False
        http.call(ctx, "DELETE", path, allow=(404,))
        return True

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        """By its own token, which can do this; its program has ended before."""
        http = Http(f"{credentials['gitlab_url']}/api/v4", {})
        body = {"token": credentials["runner_token"]}
        http.call(ctx, "DELETE", "/runners", body=body, allow=(401, 403, 404))  # gone already
        return True

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """The program does not tell which job it has, GitLab does: the last one, if nobody told
        how it ended."""
        for each in self._listed(ctx):
            if _own(each["description"])[1] != runner.task:
                continue
            query = {"order_by": "id", "sort": "desc", "per_page": "1"}
            path = f"/runners/{each['id']}/jobs"
            for row in self._api(ctx).call(ctx, "GET", path, query=query).json:
                if row["status"] == "running" or row.get("failure_reason") in _LOSSES:
                    return Job(f"{row['project']['id']}/{row['id']}")
        return None

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        """As `lost` told it; GitLab itself would notice the loss after an hour."""
        project, _, number = job.run.partition("/")
        path = f"/projects/{project}/jobs/{number}"
        http, ctx = self._api(ctx), ctx.within(_OVER_WITHIN)
        waited = 0.0
        while (status := http.call(ctx, "GET", path).json["status"]) not in ("canceled", "failed"):
            if status == "success":
                return False
            force = {"force": "true"} if waited >= _FORCE_AFTER else {}
            if status != "canceling" or force:
                http.call(ctx, "POST", f"{path}/cancel", query=force, allow=(400, 403))
            ctx.sleep(_LOOK_EVERY)
            waited += _LOOK_EVERY
        http.call(ctx, "POST", f"{path}/retry", tries=1)
        return True

    def may_travel(self) -> bool:
        """As `check` saw it. Most tokens can do whatever their owner can, for up to a year."""
        return self._brief or (bool(self._scopes) and self._scopes <= _HARMLESS)


def _description(runner: Runner) -> str:
    """The name, and for those who chose one, what makes the runner ours: lists have no tags."""
    return runner.name if runner.name == runner.task else f"{runner.name} [{runner.task}]"


def _own(description: str | None) -> tuple[str, str]:
    """The name and the task of a runner; one that is not ours has no task."""
    text = description or ""
    if match := _OWN.fullmatch(text):
        return match["name"], match["task"]
    return text, text if TaskId.looks_like(text) else ""


def _is_brief(expires_at: str | None) -> bool:
    try:
        last = datetime.date.fromisoformat(expires_at or "")
    except ValueError:
        return False
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return last - today <= _BRIEF


def _sums(text: str) -> dict[str, str]:
    """Of lines like those of sha256sum."""
    rows = (line.split() for line in text.splitlines())
    return {row[-1].lstrip("*").removeprefix("./"): row[0] for row in rows if len(row) == 2}


def _rejected(http: Http, answer: Answer) -> SojournError:
    return AuthError(
        f"{http.host} rejected the token: {answer.message or 'HTTP 401'}",
        hint="Check that it has not expired.",
    )
