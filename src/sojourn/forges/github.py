"""GitHub, and GitHub Enterprise Server."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Conflict, InvalidInput
from sojourn.core.runner import Program
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.http import Http
from sojourn.forges.owner import explained, names_in, require_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Runner

__all__ = ["HOSTS", "PREFIXES", "SERVERS", "TOKENS", "Driver", "repo_here"]

HOSTS = ("github.com",)
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")  # variables that may have one
SERVERS = ("GITHUB_SERVER_URL",)  # and those that say whose it is, if it is not one of HOSTS
PREFIXES = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")  # of all of its tokens
_ARCHITECTURES = {"x64": "x86_64", "arm64": "aarch64"}
_PAGE = 100
_PAGES = 100  # 10,000 runners are all that GitHub allows
_CANCELLED_WITHIN = 15 * 60.0  # seconds; GitHub gives up a lost runner after ten minutes
_LOOK_EVERY = 5.0
_DEFAULT_GROUP = 1
_RIGHTS = (
    "The token needs write access to runners: the `repo` scope (classic), `Administration: write` "
    "of the repository or `Self-hosted runners: write` of the organization (fine-grained)."
)


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose CI this program runs in; none: empty."""
    name = environment.get("GITHUB_REPOSITORY", "")
    if not name or environment.get("GITEA_ACTIONS") or environment.get("FORGEJO_ACTIONS"):
        return ""
    return f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"


class Driver:
    """A repository or an organization, by its address."""

    limits = "GitHub ends jobs after 5 days, and drops those that wait 24 hours for a runner."

    def __init__(self, repo: str, token: str) -> None:
        address = urllib.parse.urlsplit(repo)
        parts = names_in(repo)
        if not 1 <= len(parts) <= 2:
            raise InvalidInput(
                "repo", f"must be like https://{HOSTS[0]}/OWNER/REPO or .../ORGANIZATION: {repo!r}"
            )
        self._parts = parts
        self._token = token
        self._scope = f"/repos/{'/'.join(parts)}" if len(parts) == 2 else f"/orgs/{parts[0]}"
        own = address.netloc in HOSTS
        base = "https://api.github.com" if own else f"{address.scheme}://{address.netloc}/api/v3"
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = Http(base, headers)

    def check(self, ctx: Context) -> Repository:
        with explained(self._http, self._parts, _RIGHTS):
            found = self._http.call(ctx, "GET", self._scope).json
            self._http.call(ctx, "GET", self._runners, query={"per_page": "1"})
        return Repository(public=len(self._parts) == 2 and not found.get("private", False))

    @property
    def _runners(self) -> str:
        return f"{self._scope}/actions/runners"

    def programs(self, ctx: Context) -> dict[str, Program]:
        found = self._http.call(ctx, "GET", f"{self._runners}/downloads").json
        return {
            _ARCHITECTURES[each["architecture"]]: Program(
                _version(each["filename"]), each["download_url"], each["sha256_checksum"]
            )
            for each in found
            if each["os"] == "linux"
            and each["architecture"] in _ARCHITECTURES
            and each.get("sha256_checksum")
        }

    def register(self, ctx: Context, runner: Runner) -> Registration:
        """One for a single job is made here, others by the program: its token is good for an
        hour."""
        if not runner.single:
            answer = self._http.call(ctx, "POST", f"{self._runners}/registration-token")
            return Registration("", {"registration_token": answer.json["token"]})
        body = {
            "name": runner.name,
            "runner_group_id": _DEFAULT_GROUP,
            "labels": ["self-hosted", "linux", *runner.all_labels],
        }
        path = f"{self._runners}/generate-jitconfig"
        answer = self._http.call(ctx, "POST", path, body=body, allow=(409,))
        if answer.status == 409:
            raise _taken(runner, answer.message)
        made = answer.json
        return Registration(
            str(made["runner"]["id"]), {"jit_configuration": made["encoded_jit_config"]}
        )

    def runners(self, ctx: Context) -> list[Registered]:
        return [
            Registered(
                str(each["id"]),
                each["name"],
                each["status"] == "online",
                bool(each["busy"]),
                frozenset(label["name"] for label in each["labels"]),
            )
            for each in self._pages(ctx, self._runners, "runners")
        ]

    def _pages(self, ctx: Context, path: str, key: str) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            query = {"per_page": str(_PAGE), "page": str(page)}
            found = self._http.call(ctx, "GET", path, query=query).json[key]
            yield from found
            if len(found) < _PAGE:
                return

    def unregister(self, ctx: Context, id: str) -> bool:
        answer = self._http.call(ctx, "DELETE", f"{self._runners}/{id}", allow=(404, 422))
        return answer.status != 422

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        require_token(self._token)
        own = [each for each in self.runners(ctx) if runner.task in each.labels]
        gone = [self.unregister(ctx, each.id) for each in own]
        return all(gone)

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """The program's hooks told which."""
        return job

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        if len(self._parts) != 2 or not job.run.isdecimal():
            return False  # the runs of an organization are those of its repositories
        run = f"{self._scope}/actions/runs/{job.run}"
        if not self._was_on(ctx, f"{run}/jobs", runner):
            return False
        ctx = ctx.within(_CANCELLED_WITHIN)
        # A run that is not over cannot be repeated; its other jobs go on until then.
        while (now := self._http.call(ctx, "GET", run).json)["status"] != "completed":
            if not self._is_working(ctx, f"{run}/jobs", runner):
                self._http.call(ctx, "POST", f"{run}/cancel", allow=(409,))
            ctx.sleep(_LOOK_EVERY)
        if now["conclusion"] == "success":
            return False
        self._http.call(ctx, "POST", f"{run}/rerun-failed-jobs")
        return True

    def _was_on(self, ctx: Context, jobs: str, runner: Runner) -> bool:
        return any(each.get("runner_name") == runner.name for each in self._jobs(ctx, jobs))

    def _is_working(self, ctx: Context, jobs: str, runner: Runner) -> bool:
        """Whether other runners still carry out jobs of the same run."""
        return any(
            each["status"] == "in_progress" and each.get("runner_name") != runner.name
            for each in self._jobs(ctx, jobs)
        )

    def _jobs(self, ctx: Context, path: str) -> list[dict[str, Any]]:
        return list(self._pages(ctx, path, "jobs"))

    def may_travel(self) -> bool:
        """Classic tokens (ghp_) and those of OAuth apps (gho_) can do all that their owner can."""
        return self._token.startswith(("github_pat_", "ghs_", "ghu_"))


def _taken(runner: Runner, said: str) -> Conflict:
    return Conflict(
        f"A runner named {runner.name} is already registered: {said}",
        hint="Choose another name, or run `sojourn runner delete` for the one that is there.",
    )


def _version(filename: str) -> str:
    """Of actions-runner-linux-x64-2.330.0.tar.gz."""
    return filename.removesuffix(".tar.gz").rpartition("-")[2]
