"""What Gitea has in common with Forgejo, which began as a copy of it: addresses and scopes.

Their ways to register runners are not the same, nor are their runner programs.
"""

from __future__ import annotations

import time
import urllib.parse
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.runner import Program
from sojourn.forges.http import TRIES, Http, published_sum
from sojourn.forges.owner import explained, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from sojourn.core.context import Context

__all__ = ["API", "PROTOCOL", "Driver", "actual", "published", "refuse_colons", "repo_here"]

API = "/api/v1"
PROTOCOL = "/api/actions/runner.v1.RunnerService"  # of runner programs
_LOST = "RESULT_CANCELLED"  # of a job that its machine took along
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PAGE = 50  # the most that they send, unless an administrator says otherwise
_PAGES = 1000
_RIGHTS = (
    "The token's user must own the repository or organization, and the token needs the scope "
    "write:repository (write:organization or write:user for runners of an owner)."
)


def actual(ctx: Context, repo: str) -> str:
    """The driver of what runs there; only Forgejo has this address."""
    allow = (400, 401, 403, 404, 405)
    answer = Place(repo, "").http.call(ctx, "GET", "/api/forgejo/v1/version", allow=allow)
    return "forgejo" if answer.status < 300 else "gitea"


class Place:
    """A repository, an organization or a user, by its address."""

    def __init__(self, repo: str, token: str) -> None:
        address = urllib.parse.urlsplit(repo)
        parts = names_in(repo)
        if not parts:
            raise InvalidInput(
                "repo", f"must be like https://HOST/OWNER/REPO or .../ORGANIZATION: {repo!r}"
            )
        # What comes before is the path that the whole forge is at.
        self.parts = parts[-2:]
        self.base = "/".join([f"{address.scheme}://{address.netloc}", *parts[:-2]])
        self.http = Http(self.base, {"Authorization": f"token {token}"} if token else {})
        self._found_scope = ""

    @property
    def is_repository(self) -> bool:
        return len(self.parts) == 2

    def is_public(self, ctx: Context) -> bool:
        """Whether it is a repository that everybody sees."""
        found = self.http.call(ctx, "GET", self.scope(ctx)).json
        return self.is_repository and not found.get("private", False)

    def scope(self, ctx: Context) -> str:
        """What the paths of the API begin with. One name is that of an organization or a user."""
        if self.is_repository:
            return f"{API}/repos/{'/'.join(self.parts)}"
        if not self._found_scope:
            (name,) = self.parts
            found = self.http.call(ctx, "GET", f"{API}/orgs/{name}", allow=(404,))
            self._found_scope = f"{API}/orgs/{name}" if found.status < 300 else self._own(ctx)
        return self._found_scope

    def _own(self, ctx: Context) -> str:
        """Runners of a user are registered by nobody else."""
        found = self.http.call(ctx, "GET", f"{API}/user").json
        if found["login"].lower() != self.parts[0].lower():
            raise NotFound(f"no organization {self.parts[0]}, and the token is another user's")
        return f"{API}/user"

    def runners(self, ctx: Context) -> str:
        return f"{self.scope(ctx)}/actions/runners"

    def delete(self, ctx: Context, id: str) -> None:
        self.http.call(ctx, "DELETE", f"{self.runners(ctx)}/{id}", allow=(404,))

    def pages(
        self, ctx: Context, path: str, key: str, more: dict[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """All rows of a list; `key`: where they are in its answers, and beside it their number."""
        seen: set[int] = set()
        for page in range(1, _PAGES + 1):
            query = {**(more or {}), "limit": str(_PAGE), "page": str(page)}
            answer = self.http.call(ctx, "GET", path, query=query).json
            found = answer[key] or []
            # What was there on the page before may have moved on to this one.
            yield from (each for each in found if each["id"] not in seen)
            seen.update(each["id"] for each in found)
            if not found or len(seen) >= answer["total_count"]:
                return

    def rows(self, ctx: Context, path: str) -> Iterator[dict[str, Any]]:
        """All rows of a list whose answers do not tell their number."""
        seen: set[int] = set()
        for page in range(1, _PAGES + 1):
            query = {"limit": str(_PAGE), "page": str(page)}
            found = self.http.call(ctx, "GET", path, query=query).json or []
            new = [each for each in found if each["id"] not in seen]
            yield from new
            seen.update(each["id"] for each in new)
            if not new:
                return

    def explained(self) -> AbstractContextManager[None]:
        return explained(self.http, self.parts, _RIGHTS)


class Driver:
    """What drivers of both begin with."""

    def __init__(self, repo: str, token: str) -> None:
        self._token = token
        self._place = Place(repo, token)
        self._http = self._place.http

    def _end(self, ctx: Context, task: str, own: Mapping[str, str], tries: int = TRIES) -> None:
        """Say as the runner that has a task that it was cancelled."""
        identity = {"x-runner-uuid": own["uuid"], "x-runner-token": own["token"]}
        stopped = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state = {"id": task, "result": _LOST, "stoppedAt": stopped}
        Http(self._place.base, identity).call(
            ctx, "POST", f"{PROTOCOL}/UpdateTask", body={"state": state}, tries=tries
        )

    def may_travel(self) -> bool:
        """Nobody can ask what a token is for, and the one of a running job is for too little."""
        return False


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose CI this program runs in, by the variables that both set as GitHub."""
    name = environment.get("GITHUB_REPOSITORY", "")
    server = environment.get("GITHUB_SERVER_URL", "").rstrip("/")
    return f"{server}/{name}" if name and server else ""


def published(ctx: Context, version: str, url: str) -> dict[str, Program]:
    """A version of a program; `url`: where it is, with {} for the architecture."""
    urls = {machine: url.format(name) for machine, name in _ARCHITECTURES.items()}
    return {
        machine: Program(version, each, published_sum(ctx, f"{each}.sha256"))
        for machine, each in urls.items()
    }


def refuse_colons(labels: tuple[str, ...], title: str) -> None:
    """What comes after a colon in a label tells the program how to carry jobs out."""
    for label in labels:
        if ":" in label:
            raise InvalidInput("labels", f"must not contain ':' for {title}, got {label!r}")
