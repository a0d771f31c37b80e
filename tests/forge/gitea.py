"""What tests do with a Gitea, beside what is being tested."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import until

__all__ = ["Gitea", "Repo"]

_WORKFLOW = """\
on: push
jobs:
  job:
    runs-on: [{labels}]
    steps:
      - run: |
{script}
"""


@dataclass
class Gitea:
    """A server, as the owner of a token sees it."""

    url: str
    token: str = field(repr=False)
    owner: str

    def call(self, method: str, path: str, body: object = None, token: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {token or self.token}"}
        url = f"{self.url}/api/v1{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        if data:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read().decode()
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text  # a log

    def is_up(self) -> bool:
        try:
            return bool(self.call("GET", "/version")["version"])
        except OSError:
            return False

    def repo(self, name: str, *, organization: str = "", public: bool = False) -> Repo:
        owner = f"/orgs/{organization}" if organization else "/user"
        body = {"name": name, "auto_init": True, "private": not public, "default_branch": "main"}
        self.call("POST", f"{owner}/repos", body)
        return Repo(self, f"{organization or self.owner}/{name}")

    def organization(self, name: str) -> str:
        self.call("POST", "/orgs", {"username": name, "visibility": "private"})
        return f"{self.url}/{name}"


@dataclass
class Repo:
    """A repository and its jobs."""

    gitea: Gitea
    name: str
    pushed: int = 0

    @property
    def url(self) -> str:
        return f"{self.gitea.url}/{self.name}"

    def get(self, path: str) -> Any:
        return self.gitea.call("GET", f"/repos/{self.name}{path}")

    def push(self, script: str, *labels: str) -> int:
        """A workflow with one job; returns the id of its run."""
        self.pushed += 1
        lines = "\n".join(f"          {line}" for line in script.splitlines())
        text = _WORKFLOW.format(labels=", ".join(labels or ("cml",)), script=lines)
        path = f"/repos/{self.name}/contents/.gitea/workflows/test.yaml"
        body: dict[str, Any] = {"content": base64.b64encode(text.encode()).decode()}
        body["message"] = f"change {self.pushed}"
        method = "POST"
        if self.pushed > 1:
            method = "PUT"
            body["sha"] = self.get("/contents/.gitea/workflows/test.yaml")["sha"]
        self.gitea.call(method, path, body)
        until(lambda: len(self._runs()) == self.pushed)  # Gitea has a queue for what is pushed
        return max(self._runs())

    def _runs(self) -> list[int]:
        return [int(each["id"]) for each in self.get("/actions/runs")["workflow_runs"]]

    def run(self, id: int) -> Any:
        return self.get(f"/actions/runs/{id}")

    def job(self, run: int) -> Any:
        (job,) = self.get(f"/actions/runs/{run}/jobs")["jobs"]
        return job

    def log(self, run: int) -> str:
        return str(self.get(f"/actions/jobs/{self.job(run)['id']}/logs"))

    def runners(self) -> list[str]:
        return [each["name"] for each in self.get("/actions/runners")["runners"]]
