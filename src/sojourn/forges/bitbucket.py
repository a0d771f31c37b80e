"""Bitbucket Cloud."""

from __future__ import annotations

import base64
import binascii
import os
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError, InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.runner import Program
from sojourn.forges.forge import Job, Registered, Registration, Repository
from sojourn.forges.http import Http, checksum, made_once
from sojourn.forges.owner import explained, names_in, require_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Runner
    from sojourn.forges.http import Answer

__all__ = ["HOSTS", "LACKING", "PREFIXES", "SERVERS", "TOKENS", "Driver", "repo_here"]

HOSTS = ("bitbucket.org",)
TOKENS = ("BITBUCKET_TOKEN",)
SERVERS = ()  # there is no other Bitbucket Cloud
PREFIXES = ("ATATT", "ATCTT")
LACKING = {
    "single": "its runner program has no mode for one job",
    "reuse_idle": "its API does not say which runners are idle",
}

# The version is ours. Atlassian publishes no checksums: the computer that launches a runner reads
# the file, and its machines, of later attempts as well, get the very same one or none.
_VERSION = "3.33.0"
_SOURCE = "https://product-downloads.atlassian.com/software/bitbucket/pipelines"
_MIRROR = "SOJOURN_RUNNER_SOURCE_BITBUCKET"  # a variable: another place with the same file
_FILE = "atlassian-bitbucket-pipelines-runner-{}.tar.gz"
_ARCHITECTURES = ("x86_64", "aarch64")  # it is Java

_GIVEN = ("self.hosted", "linux.shell")  # steps have to ask for both
_LABEL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_LABELS = 10  # at most, beside those
_PAGE = 100
_PAGES = 100
_LOOK_EVERY = 5.0
_OVER_WITHIN = 15 * 60.0  # seconds
_WRITE = frozenset(("runner:write", "write:runner:bitbucket"))
_HARMLESS = _WRITE | {
    *("runner", "pipeline", "pipeline:write", "repository", "account", "workspace"),
    *("read:runner:bitbucket", "read:pipeline:bitbucket", "write:pipeline:bitbucket"),
    *("read:repository:bitbucket", "read:workspace:bitbucket", "read:user:bitbucket"),
}
_RIGHTS = (
    "The token needs the scopes `runner:write`, `pipeline:write` and `repository` (access tokens), "
    "or write:runner:bitbucket, read:runner:bitbucket, write:pipeline:bitbucket and "
    "read:repository:bitbucket (API tokens, given as EMAIL:TOKEN)."
)


def repo_here(environment: Mapping[str, str]) -> str:
    """The repository whose pipeline this program runs in; none: empty."""
    name = environment.get("BITBUCKET_REPO_FULL_NAME", "")
    return f"https://{HOSTS[0]}/{name}" if name else ""


class Driver:
    """A repository or a workspace, by its address."""

    limits = "Bitbucket ends steps after 120 minutes, unless their max-time says otherwise."

    def __init__(self, repo: str, token: str) -> None:
        address = urllib.parse.urlsplit(repo)
        parts = names_in(repo)
        if not 1 <= len(parts) <= 2:
            raise InvalidInput(
                "repo", f"must be like https://{HOSTS[0]}/WORKSPACE/REPO or .../WORKSPACE: {repo!r}"
            )
        self._parts = parts
        self._token = token
        kind = "repositories" if len(parts) == 2 else "workspaces"
        self._scope = f"/{kind}/{'/'.join(parts)}"
        own = address.netloc in HOSTS
        base = "https://api.bitbucket.org" if own else f"{address.scheme}://{address.netloc}"
        headers = {"Authorization": _authorization(token)} if token else {}
        self._http = Http(f"{base}/2.0", {"Accept": "application/json", **headers})
        self._scopes: frozenset[str] = frozenset()

    def check(self, ctx: Context) -> Repository:
        with explained(self._http, self._parts, _RIGHTS):
            found = self._http.call(ctx, "GET", self._scope).json
            answer = self._http.call(ctx, "GET", self._runners, query={"pagelen": "1"})
            self._look_at(answer)
        return Repository(public=len(self._parts) == 2 and not found.get("is_private", True))

    def _look_at(self, answer: Answer) -> None:
        """Answers tell what the token can do."""
        text = answer.headers.get("X-OAuth-Scopes", "")
        self._scopes = frozenset(text.replace(",", " ").split())
        if self._scopes and not self._scopes & _WRITE:
            raise AuthError(
                f"{self._http.host} denied access: the token has the scopes "
                f"{', '.join(sorted(self._scopes))}"
            )

    @property
    def _runners(self) -> str:
        return f"{self._scope}/pipelines-config/runners"

    def programs(self, ctx: Context) -> dict[str, Program]:
        base = os.environ.get(_MIRROR, _SOURCE).rstrip("/")
        url = f"{base}/{_FILE.format(_VERSION)}"
        program = Program(_VERSION, url, checksum(ctx, url))
        return dict.fromkeys(_ARCHITECTURES, program)

    def register(self, ctx: Context, runner: Runner) -> Registration:
        labels = _labels(runner)
        owner = self._http.call(ctx, "GET", self._scope).json
        account = owner["workspace"]["uuid"] if len(self._parts) == 2 else owner["uuid"]
        body = {"name": runner.name, "labels": [*_GIVEN, *labels]}
        made = made_once(
            ctx,
            lambda: self._http.call(ctx, "POST", self._runners, body=body, tries=1).json,
            lambda: self._remove(ctx, runner),
        )
        return Registration(
            made["uuid"],
            {
                "account_uuid": account,
                "repository_uuid": owner["uuid"] if len(self._parts) == 2 else "",
                "runner_uuid": made["uuid"],
                "client_id": made["oauth_client"]["id"],
                "client_secret": made["oauth_client"]["secret"],
            },
        )

    def _remove(self, ctx: Context, runner: Runner) -> None:
        for each in self.runners(ctx):
            if runner.task in each.labels:
                self._delete(ctx, each.id)

    def _delete(self, ctx: Context, id: str) -> None:
        self._http.call(ctx, "DELETE", f"{self._runners}/{_quoted(id)}", allow=(404,))

    def runners(self, ctx: Context) -> list[Registered]:
        return [
            Registered(
                each["uuid"],
                each["name"],
                each["state"]["status"] == "ONLINE",
                None,
                _with_task(each["labels"]),
            )
            for each in self._pages(ctx, self._runners, {})
        ]

    def _pages(self, ctx: Context, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            asked = {**query, "pagelen": str(_PAGE), "page": str(page)}
            found = self._http.call(ctx, "GET", path, query=asked).json
            yield from found["values"]
            if not found.get("next"):
                return

    def unregister(self, ctx: Context, id: str) -> bool:
        """Bitbucket would remove it with its job, and tells only of the repository's pipelines.

        One that is online stays if any of them is being carried out; of a workspace, always.
        """
        found = [each for each in self.runners(ctx) if each.id == id]
        if any(each.online for each in found) and self._may_work(ctx):
            return False
        self._delete(ctx, id)
        return True

    def _may_work(self, ctx: Context) -> bool:
        if len(self._parts) != 2:
            return True
        path, query = f"{self._scope}/pipelines", {"status": "BUILDING"}
        return any(each["state"]["name"] == "IN_PROGRESS" for each in self._pages(ctx, path, query))

    def leave(self, ctx: Context, runner: Runner, credentials: Mapping[str, str]) -> bool:
        """Its program has ended before."""
        require_token(self._token)
        self._delete(ctx, credentials["runner_uuid"])
        return True

    def lost(self, ctx: Context, runner: Runner, job: Job) -> Job | None:
        """As the environment of its processes told."""
        return job if job.run else None

    def rerun(self, ctx: Context, runner: Runner, job: Job, credentials: Mapping[str, str]) -> bool:
        """Start another pipeline like it, when it is over.

        Bitbucket does not tell which runner had a step. So a job that lies can have another
        pipeline of its own repository carried out once more, no worse.
        """
        if len(self._parts) != 2 or not job.run.startswith("{"):
            return False  # the pipelines of a workspace are those of its repositories
        path, ctx = f"{self._scope}/pipelines/{_quoted(job.run)}", ctx.within(_OVER_WITHIN)
        # Nobody tells the end of a step that was lost: the rest of its pipeline waits for that.
        self._http.call(ctx, "POST", f"{path}/stopPipeline", allow=(400, 409))
        while (now := self._http.call(ctx, "GET", path).json)["state"]["name"] != "COMPLETED":
            ctx.sleep(_LOOK_EVERY)
        if now["state"]["result"]["name"] == "SUCCESSFUL":
            return False
        body = {"target": _without_links(now["target"])}
        self._http.call(ctx, "POST", f"{self._scope}/pipelines", body=body, tries=1)
        return True

    def may_travel(self) -> bool:
        """As `check` saw it: if it can do nothing but look after runners and pipelines."""
        return bool(self._scopes) and self._scopes <= _HARMLESS


def _authorization(token: str) -> str:
    """Of an access token of a repository or workspace, of EMAIL:TOKEN, or of base64 of that."""
    if ":" in token:
        return f"Basic {base64.b64encode(token.encode()).decode()}"
    try:
        if ":" in base64.b64decode(token, validate=True).decode():
            return f"Basic {token}"
    except (binascii.Error, UnicodeDecodeError):
        pass
    if token.startswith("ATATT"):
        raise InvalidInput("token", "an API token needs its account's e-mail: EMAIL:TOKEN")
    return f"Bearer {token}"


def _labels(runner: Runner) -> list[str]:
    """Refuses what Bitbucket would. Its labels have no dashes, but the id of a task does."""
    for label in runner.labels:
        if not _LABEL.fullmatch(label):
            raise InvalidInput(
                "labels", f"must be of lower-case letters, digits and dots, got {label!r}"
            )
    if len(runner.all_labels) > _LABELS:
        raise InvalidInput("labels", f"must be {_LABELS - 1} at most, got {len(runner.labels)}")
    return [*runner.labels, runner.task.replace("-", ".")]


def _with_task(labels: list[str]) -> frozenset[str]:
    """The id of the task as others know it, too."""
    dashed = (label.replace(".", "-") for label in labels)
    return frozenset((*labels, *(each for each in dashed if TaskId.looks_like(each))))


def _without_links(value: Any) -> Any:
    """What an answer tells of a target, as a request has it."""
    if isinstance(value, dict):
        return {key: _without_links(each) for key, each in value.items() if key != "links"}
    return value


def _quoted(uuid: str) -> str:
    return urllib.parse.quote(uuid, safe="")
