"""Forgejo's API for runners, as far as we use it; it follows version 17.

The protocol of runner programs is that of Gitea, which it began as a copy of.
"""

from __future__ import annotations

import time
from typing import Any

from tests.simforge.gitea import SimGitea
from tests.simforge.server import PROGRAMS, Call, Refusal, checked
from tests.simforge.work import Job, Runner

__all__ = ["SimForgejo"]

_REPO = "/api/v1/repos/acme/widgets"
_ORG = "/api/v1/orgs/acme"
_VERSION = "13.2.0"
_ACTIVE_FOR = 10.0  # seconds after a word of a job
_ACTIVE_AFTER = 1.0  # here, of one that has ended: nobody wants to wait for that
_OFFLINE_AFTER = 8.0  # its program is not always there
_RESULTS = {"success": "success", "failure": "failure", "cancelled": "cancelled"}
_MOST = 50


class SimForgejo(SimGitea):
    """One repository of an organization; runners are either's."""

    def __init__(self) -> None:
        super().__init__()
        self.work.offline_after = _OFFLINE_AFTER
        self.descriptions: dict[int, str] = {}
        self.active: dict[int, float] = {}  # runners, and when they told of a job

    def own_routes(self) -> None:
        self.route("GET", "/api/forgejo/v1/version", lambda call: (200, {"version": "17.0.0"}))
        self.route("GET", "/api/v1/version", lambda call: (200, {"version": "17.0.0+gitea-1.22"}))
        for scope in (_REPO, _ORG):
            runners = scope + "/actions/runners"
            self.route("GET", runners, self._listed)
            self.route("POST", runners, self._registered)
            self.route("GET", runners + "/jobs", self._running)
            self.route("DELETE", runners + r"/(\d+)", self.delete_runner)
        self.route("GET", _REPO + r"/actions/runs/(\d+)", self._one_run)
        self.route("POST", _REPO + r"/actions/jobs/(\d+)/rerun", self._again)

    def environment(self) -> dict[str, str]:
        return {"SOJOURN_RUNNER_SOURCE_FORGEJO": f"{self.url}/_download"}

    def program(self) -> bytes:
        return self.zipped(
            {
                "__main__.py": PROGRAMS / "forgejo" / "forgejo_runner.py",
                "gitea_runner.py": PROGRAMS / "gitea" / "gitea_runner.py",
            }
        )

    def download(self, path: str) -> bytes:
        folder, _, name = path.rpartition("/")
        programs = {f"forgejo-runner-{_VERSION}-linux-{each}" for each in ("amd64", "arm64")}
        if folder != f"v{_VERSION}" or name.removesuffix(".sha256") not in programs:
            return b"not found"
        if name in programs:
            return self.program()
        return f"{self.program_sum()}  {name.removesuffix('.sha256')}\n".encode()

    def answer(self, call: Call) -> tuple[int, object]:
        found = super().answer(call)
        if call.path.endswith(("/UpdateTask", "/UpdateLog")):
            with self.work.lock:
                runner = self._caller(call)
                self.active[runner.id] = time.monotonic()
        return found

    def _listed(self, call: Call) -> tuple[int, object]:
        """Those of the repository alone, as a plain list."""
        if unknown := set(call.query) - {"limit", "page"}:
            raise Refusal(400, f"the fake does not know {unknown}")
        with self.work.lock:
            rows = [self._row(runner) for runner in self.work.runners.values()]
        size = min(int(call.query.get("limit", "30")), _MOST)
        start = (int(call.query.get("page", "1")) - 1) * size
        call.sent["X-Total-Count"] = str(len(rows))
        return 200, rows[start : start + size]

    def _row(self, runner: Runner) -> dict[str, Any]:
        works = any(t.runner == runner.id and not t.ended for t in self.tasks.values())
        told = time.monotonic() - self.active.get(runner.id, float("-inf"))
        active = told < (_ACTIVE_FOR if works else _ACTIVE_AFTER)
        status = ("active" if active else "idle") if runner.online else "offline"
        return {
            "id": runner.id,
            "uuid": self.runner_uuid(runner),
            "owner_id": 0,
            "repo_id": 1,
            "name": runner.name,
            "status": status,
            "version": "",
            "labels": list(runner.labels),
            "description": self.descriptions.get(runner.id, ""),
            "ephemeral": runner.single,
        }

    def _registered(self, call: Call) -> tuple[int, object]:
        body = checked(call.body, {"name": str}, {"description": str, "ephemeral": bool})
        runner = self.work.register(body["name"], (), single=body.get("ephemeral", False))
        self.descriptions[runner.id] = body.get("description", "")
        made = {"id": runner.id, "uuid": self.runner_uuid(runner), "token": runner.key}
        return 201, {**made, "ephemeral": runner.single}

    def _running(self, call: Call) -> tuple[int, object]:
        """Jobs that wait or run; none: null."""
        with self.work.lock:
            rows = [
                {
                    "id": task.job.id,
                    "name": f"job-{task.job.id}",
                    "runs_on": sorted(task.job.labels),
                    "task_id": task.id,
                    "status": "running",
                }
                for task in self.tasks.values()
                if not task.ended
            ]
        return 200, rows or None

    def _one_run(self, call: Call) -> tuple[int, object]:
        job = self.job_of_run(call)
        return 200, {"id": job.run, "index_in_repo": job.id, "status": _status(job)}

    def _again(self, call: Call) -> tuple[int, object]:
        job = self.work.jobs.get(int(call.parts[0]))
        if job is None:
            raise Refusal(404, "The target couldn't be found.")
        if self.work.settled(job).status != "completed":
            raise Refusal(400, "this workflow run is not done")
        self.work.again(job)
        return 204, None


def _status(job: Job) -> str:
    if job.status == "completed":
        return _RESULTS[job.conclusion]
    return "running" if job.status == "in_progress" else "waiting"
