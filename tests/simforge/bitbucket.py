"""Bitbucket Cloud's API for runners and pipelines, as far as it is documented and we use it."""

from __future__ import annotations

import re
import tempfile
import uuid
from pathlib import Path
from typing import Any

from tests.simforge.server import PROGRAMS, Call, Refusal, SimForge, checked, packed
from tests.simforge.work import Job, Runner, Work

__all__ = ["SimBitbucket"]

_REPO = "/2.0/repositories/acme/widgets"
_WORKSPACE = "/2.0/workspaces/acme"
_LABEL = re.compile(r"[a-z0-9.]+")
_STATES = {"queued": "PENDING", "in_progress": "IN_PROGRESS", "completed": "COMPLETED"}
_RESULTS = {"success": "SUCCESSFUL", "failure": "FAILED", "cancelled": "STOPPED"}


class _Pipelines(Work):
    """Pipelines ask for labels in the way that Bitbucket has them."""

    def queue(self, script: str, *labels: str) -> Job:
        return super().queue(script, *(label.replace("-", ".") for label in labels))


class SimBitbucket(SimForge):
    """One repository in a workspace. `scopes`: those of the owner's token."""

    def __init__(self) -> None:
        super().__init__(work=_Pipelines(), token="ATCTT3xSecretOfTheOwner", publishes_sums=False)
        self.scopes = ["runner:write", "pipeline:write", "repository"]
        self.workspace_runners: set[int] = set()
        self.tools = PROGRAMS / "bitbucket" / "tools"
        for base in (_REPO, _WORKSPACE):
            self.route("GET", base, self._owner)
            self.route("GET", f"{base}/pipelines-config/runners", self._list)
            self.route("POST", f"{base}/pipelines-config/runners", self._create)
            self.route("DELETE", f"{base}/pipelines-config/runners/([^/]+)", self._delete)
        self.route("GET", f"{_REPO}/pipelines", self._pipelines)
        self.route("POST", f"{_REPO}/pipelines", self._start)
        self.route("GET", f"{_REPO}/pipelines/([^/]+)", self._pipeline)
        self.route("POST", f"{_REPO}/pipelines/([^/]+)/stopPipeline", self._stop)

    @property
    def repo(self) -> str:
        return f"{self.url}/acme/widgets"

    def program(self) -> bytes:
        """It speaks with no other Bitbucket than the real one, but this one has to know ours."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "forge").write_text(self.url)
            files = [PROGRAMS / "bitbucket" / "standin.py", PROGRAMS / "client.py"]
            (Path(folder) / "runner.jar").write_text("")
            return packed(Path(folder), *files, inside="bin/")

    def error(self, message: str) -> object:
        return {"type": "error", "error": {"message": message}}

    def answer(self, call: Call) -> tuple[int, object]:
        if call.headers.get("Authorization") != f"Bearer {self.token}":
            raise Refusal(401, "Token is invalid, expired, or not supported for this endpoint.")
        kind = "runner" if "/pipelines-config/" in call.path else "pipeline"
        write = f"{kind}:write" in self.scopes
        if "/pipelines" in call.path and not write and (call.method != "GET" or kind == "runner"):
            raise Refusal(403, "Your credentials lack one or more required privilege scopes.")
        call.sent["X-OAuth-Scopes"] = ", ".join(self.scopes)
        return super().answer(call)

    def _owner(self, call: Call) -> tuple[int, object]:
        workspace = {"uuid": _uuid("acme"), "slug": "acme"}
        if call.path == _WORKSPACE:
            return 200, workspace
        private = not self.public
        return 200, {"uuid": _uuid("widgets"), "is_private": private, "workspace": workspace}

    def _list(self, call: Call) -> tuple[int, object]:
        everywhere = call.path.startswith(_WORKSPACE)
        with self.work.lock:
            rows = [
                _row(runner)
                for runner in self.work.runners.values()
                if (runner.id in self.workspace_runners) is everywhere
            ]
        return 200, _page(call, rows, set())

    def _create(self, call: Call) -> tuple[int, object]:
        body = checked(call.body, {"name": str, "labels": list}, {})
        labels = body["labels"]
        if not all(_LABEL.fullmatch(label) for label in labels):
            raise Refusal(
                400, "Labels can only contain lowercase, alphanumeric characters and dots"
            )
        if labels[:2] != ["self.hosted", "linux.shell"] or len(labels) > 12:
            raise Refusal(400, "invalid labels")
        runner = self.work.register(body["name"], tuple(labels), single=False)
        if call.path.startswith(_WORKSPACE):
            self.workspace_runners.add(runner.id)
        client = {"id": f"client-{runner.id}", "secret": runner.key}
        return 201, {**_row(runner), "oauth_client": client}

    def _delete(self, call: Call) -> tuple[int, object]:
        """Whatever it is doing."""
        for runner in [*self.work.runners.values()]:
            if call.parts[0] == _encoded(_uuid(f"runner {runner.id}")):
                del self.work.runners[runner.id]
                return 204, None
        raise Refusal(404, "Runner not found")

    def _pipelines(self, call: Call) -> tuple[int, object]:
        with self.work.lock:
            rows = [_pipeline(self.work.settled(job)) for job in self.work.jobs.values()]
        if call.query.get("status") == "BUILDING":
            rows = [row for row in rows if row["state"]["name"] == "IN_PROGRESS"]
        return 200, _page(call, rows, {"status", "sort"})

    def _job(self, call: Call) -> Job:
        for job in self.work.jobs.values():
            if call.parts[0] == _encoded(_uuid(f"pipeline {job.run}")):
                return self.work.settled(job)
        raise Refusal(404, "Pipeline not found")

    def _pipeline(self, call: Call) -> tuple[int, object]:
        return 200, _pipeline(self._job(call))

    def _stop(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        if job.status == "completed":
            raise Refusal(400, "The pipeline has already completed.")
        job.cancelling = True
        return 204, None

    def _start(self, call: Call) -> tuple[int, object]:
        """Of the commit of a pipeline that was; here, that one again."""
        target = checked(call.body, {"target": dict}, {})["target"]
        checked(target, {"type": str, "ref_type": str, "ref_name": str}, {"commit": dict})
        job = next(j for j in self.work.jobs.values() if f"b{j.run}" == target["ref_name"])
        if self.work.settled(job).status != "completed":
            raise Refusal(400, "it is still being carried out")
        self.work.again(job)
        return 201, _pipeline(job)


def _uuid(name: str) -> str:
    return f"{{{uuid.uuid5(uuid.NAMESPACE_URL, name)}}}"


def _encoded(text: str) -> str:
    return text.replace("{", "%7B").replace("}", "%7D")


def _row(runner: Runner) -> dict[str, Any]:
    never = "OFFLINE" if runner.seen > 0 else "UNREGISTERED"
    return {
        "uuid": _uuid(f"runner {runner.id}"),
        "name": runner.name,
        "labels": list(runner.labels),
        "state": {"status": "ONLINE" if runner.online else never},
    }


def _pipeline(job: Job) -> dict[str, Any]:
    state: dict[str, Any] = {"name": _STATES[job.status]}
    if job.conclusion:
        state["result"] = {"name": _RESULTS[job.conclusion]}
    commit = {"type": "commit", "hash": "0" * 40, "links": {"self": {}}}
    target = {"type": "pipeline_ref_target", "ref_type": "branch", "ref_name": f"b{job.run}"}
    return {
        "uuid": _uuid(f"pipeline {job.run}"),
        "state": state,
        "target": {**target, "commit": commit, "links": {}},
    }


def _page(call: Call, rows: list[dict[str, Any]], known: set[str]) -> dict[str, Any]:
    if unknown := set(call.query) - known - {"page", "pagelen"}:
        raise Refusal(400, f"Invalid parameter {sorted(unknown)[0]}")
    size, page = int(call.query.get("pagelen", "10")), int(call.query.get("page", "1"))
    if not 1 <= size <= 100:
        raise Refusal(400, "Invalid pagelen")
    part = {"values": rows[(page - 1) * size : page * size], "page": page, "pagelen": size}
    more = {"next": f"{call.base}{call.path}?page={page + 1}"} if len(rows) > page * size else {}
    return {**part, **more}
