"""Gitea's API for runners and their protocol, as far as we use it; it follows version 1.26.

The statuses, fields, orders and messages are those of its source. `tests/forge` has the same done
by a real one.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import time
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.simforge.server import PROGRAMS, Call, Refusal, SimForge, checked
from tests.simforge.work import Job, Runner

__all__ = ["SimGitea"]

_REPO = "/api/v1/repos/acme/widgets"
_ORG = "/api/v1/orgs/acme"
_SERVICE = "/api/actions/runner.v1.RunnerService/"
_VERSION = "3.5.0"
_LOST_AFTER = 600.0  # seconds
_MOST = 50  # items of a page
_STATUSES = ("queued", "in_progress", "completed", "success", "failure", "cancelled")


@dataclass
class _Task:
    """An attempt of a job."""

    id: int
    job: Job
    runner: int
    log: str = ""
    ended: bool = False
    started: float = field(default_factory=time.time)


class SimGitea(SimForge):
    """One repository of an organization; runners are either's."""

    def __init__(self) -> None:
        super().__init__(token=secrets.token_hex(20))
        self.work.lost_after = _LOST_AFTER
        self.registration_tokens: dict[str, str] = {}  # by scope
        self.scopes = {"write:repository", "write:organization", "read:user"}
        self.disabled: set[int] = set()
        self.tasks: dict[int, _Task] = {}
        self.route(
            "GET", _REPO, lambda call: (200, {"name": "widgets", "private": not self.public})
        )
        self.route("GET", _ORG, lambda call: (200, {"name": "acme", "visibility": "public"}))
        self.route("GET", "/api/v1/user", lambda call: (200, {"login": "owner"}))
        self.route("GET", _REPO + "/actions/tasks", self._tasks)
        self.own_routes()
        for name in ("Declare", "FetchTask", "UpdateTask", "UpdateLog"):
            self.route("POST", _SERVICE + name, getattr(self, f"_{name.lower()}"))

    def own_routes(self) -> None:
        """What Forgejo does not have, or not in this way."""
        self.route("GET", "/api/v1/version", lambda call: (200, {"version": "1.26.0"}))
        for scope in (_REPO, _ORG):
            runners = scope + "/actions/runners"
            self.route("GET", runners, self._list)
            self.route("POST", runners + "/registration-token", self._registration_token)
            self.route("PATCH", runners + r"/(\d+)", self._edit)
            self.route("DELETE", runners + r"/(\d+)", self.delete_runner)
            self.route("GET", scope + "/actions/jobs", self._jobs)
        self.route("GET", _REPO + r"/actions/runs/(\d+)", self._run)
        self.route("POST", _REPO + r"/actions/runs/(\d+)/rerun-failed-jobs", self._rerun)
        self.route("POST", _SERVICE + "Register", self._register)

    @property
    def repo(self) -> str:
        return f"{self.url}/acme/widgets"

    def environment(self) -> dict[str, str]:
        return {"SOJOURN_RUNNER_SOURCE_GITEA": f"{self.url}/_download/gitea-runner"}

    def program(self) -> bytes:
        return self.zipped({"__main__.py": PROGRAMS / "gitea" / "gitea_runner.py"})

    def zipped(self, files: dict[str, Path]) -> bytes:
        """With a library for YAML, which a real Gitea sends: Python runs what is in a zip."""
        buffer = io.BytesIO(b"#!/usr/bin/env python3\n")
        buffer.seek(0, io.SEEK_END)
        with zipfile.ZipFile(buffer, "a") as target:
            for name, path in files.items():
                target.writestr(zipfile.ZipInfo(name), path.read_bytes())
            for file in sorted(Path(yaml.__file__).parent.glob("*.py")):
                target.writestr(zipfile.ZipInfo(f"yaml/{file.name}"), file.read_bytes())
        return buffer.getvalue()

    def download(self, path: str) -> bytes:
        name = path.rpartition("/")[2]
        programs = {f"gitea-runner-{_VERSION}-linux-{each}" for each in ("amd64", "arm64")}
        if name in programs:
            return self.program()
        if name.removesuffix(".sha256") in programs:
            return f"{self.program_sum()}  {name.removesuffix('.sha256')}\n".encode()
        return b"not found"

    def answer(self, call: Call) -> tuple[int, object]:
        if call.path.startswith("/api/v1/"):
            self._refuse_stranger(call)
        return super().answer(call)

    def _refuse_stranger(self, call: Call) -> None:
        if call.headers.get("Authorization") != f"token {self.token}":
            raise Refusal(401, "user does not exist [uid: 0, name: ]")
        kinds = {"repos": "repository", "orgs": "organization", "user": "user"}
        kind = kinds.get(call.path.split("/")[3])
        if kind is None:
            return
        wanted = {f"write:{kind}"} if call.method != "GET" else {f"read:{kind}", f"write:{kind}"}
        if not wanted & self.scopes:
            raise Refusal(
                403,
                "token does not have at least one of required scope(s), "
                f"required={sorted(wanted)}, token scope={','.join(sorted(self.scopes))}",
            )

    def _page(self, call: Call, key: str, rows: list[dict[str, Any]]) -> tuple[int, object]:
        if unknown := set(call.query) - {"limit", "page", "status", "disabled"}:
            raise Refusal(400, f"the fake does not know {unknown}")
        size = min(int(call.query.get("limit", "30")), _MOST)
        start = (int(call.query.get("page", "1")) - 1) * size
        return 200, {"total_count": len(rows), key: rows[start : start + size]}

    def _list(self, call: Call) -> tuple[int, object]:
        with self.work.lock:
            rows = [self._shown(runner) for runner in self.work.runners.values()]
        return self._page(call, "runners", rows)

    def _shown(self, runner: Runner) -> dict[str, Any]:
        return {
            "id": runner.id,
            "name": runner.name,
            "status": "online" if runner.online else "offline",
            "busy": False,  # of a job that says nothing for 10 seconds
            "disabled": runner.id in self.disabled,
            "ephemeral": runner.single,
            "labels": [
                {"id": number, "name": label, "type": "custom"}
                for number, label in enumerate(runner.labels)
            ],
        }

    def _registration_token(self, call: Call) -> tuple[int, object]:
        scope = call.path.removesuffix("/registration-token")
        self.registration_tokens.setdefault(scope, secrets.token_hex(20))
        return 200, {"token": self.registration_tokens[scope]}

    def runner_of(self, call: Call) -> Runner:
        runner = self.work.runners.get(int(call.parts[0]))
        if runner is None:
            raise Refusal(404, "Runner not found")
        return runner

    def _edit(self, call: Call) -> tuple[int, object]:
        runner = self.runner_of(call)
        body = checked(call.body, {"disabled": bool}, {})
        runner.paused = body["disabled"]
        (self.disabled.add if body["disabled"] else self.disabled.discard)(runner.id)
        return 200, self._shown(runner)

    def delete_runner(self, call: Call) -> tuple[int, object]:
        """One that has a job, too."""
        del self.work.runners[self.runner_of(call).id]
        return 204, None

    def _jobs(self, call: Call) -> tuple[int, object]:
        status = call.query.get("status")
        if status is not None and status not in _STATUSES:
            raise Refusal(400, f"Invalid status {status}")
        with self.work.lock:
            rows = [self._shown_job(job) for job in self.work.jobs.values()]
        rows = [row for row in rows if status in (None, row["status"], row.get("conclusion"))]
        return self._page(call, "jobs", rows)

    def _shown_job(self, job: Job) -> dict[str, Any]:
        self.work.settled(job)
        row = {
            "id": job.id,
            "url": f"{self.url}{_REPO}/actions/jobs/{job.id}",
            "run_id": job.run,
            "run_url": f"{self.url}{_REPO}/actions/runs/{job.run}",
            "name": f"job-{job.id}",
            "labels": sorted(job.labels),
            "run_attempt": job.attempt,
            "status": job.status,
            "conclusion": job.conclusion,
            "runner_id": job.runner_id,
            "runner_name": job.runner,
            "started_at": self._started(job),
            "steps": [],
        }
        empty = ("conclusion", "runner_id", "runner_name")
        return {key: value for key, value in row.items() if value or key not in empty}

    def _started(self, job: Job) -> str:
        times = [task.started for task in self.tasks.values() if task.job is job]
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(times, default=0)))

    def job_of_run(self, call: Call) -> Job:
        found = (job for job in self.work.jobs.values() if job.run == int(call.parts[0]))
        job = next(found, None)
        if job is None:
            raise Refusal(404, "not found")
        return self.work.settled(job)

    def _run(self, call: Call) -> tuple[int, object]:
        job = self.job_of_run(call)
        shown = {"id": job.run, "run_number": job.id, "status": job.status}
        return 200, {**shown, "conclusion": job.conclusion} if job.conclusion else shown

    def _rerun(self, call: Call) -> tuple[int, object]:
        job = self.job_of_run(call)
        if job.status != "completed":
            raise Refusal(400, "this workflow run is not done")
        if job.conclusion != "success":
            self.work.again(job)
        return 201, None

    def _tasks(self, call: Call) -> tuple[int, object]:
        rows = [
            {
                "id": task.id,
                "name": f"job-{task.job.id}",
                "run_number": task.job.id,
                "status": "success" if task.ended else "running",
            }
            for task in reversed(self.tasks.values())
        ]
        rows = [row for row in rows if call.query.get("status") in (None, row["status"])]
        return self._page(call, "workflow_runs", rows)

    def _register(self, call: Call) -> tuple[int, object]:
        body = checked(
            call.body,
            {"name": str, "token": str},
            {"version": str, "labels": list, "ephemeral": bool},
        )
        if body["token"] not in self.registration_tokens.values():
            raise Refusal(500, "runner registration token not found")
        labels = tuple(body.get("labels", ()))
        single = body.get("ephemeral", False)
        runner = self.work.register(body["name"], labels, single=single)
        made = {"id": str(runner.id), "uuid": self.runner_uuid(runner), "token": runner.key}
        shown = {**made, "name": runner.name, "labels": labels}
        return 200, {"runner": {**shown, "ephemeral": True} if single else shown}

    def runner_uuid(self, runner: Runner) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, str(runner.id)))

    def _caller(self, call: Call) -> Runner:
        for runner in self.work.runners.values():
            if self.runner_uuid(runner) == call.headers.get(
                "x-runner-uuid"
            ) and runner.key == call.headers.get("x-runner-token"):
                return runner
        raise Refusal(401, "unauthenticated: unregistered runner")

    def _declare(self, call: Call) -> tuple[int, object]:
        body = checked(call.body, {"version": str, "labels": list}, {})
        with self.work.lock:
            runner = self._caller(call)
            runner.labels = tuple(body["labels"])
        return 200, {"runner": {"name": runner.name}}

    def _fetchtask(self, call: Call) -> tuple[int, object]:
        checked(call.body, {"tasksVersion": str}, {})
        with self.work.lock:
            runner = self._caller(call)
            _, answer = self.work.program("poll", {"key": runner.key})
            assert isinstance(answer, dict)
            if not answer["job"]:
                return 200, {"tasksVersion": "1"}
            job = self.work.jobs[int(answer["job"]["id"])]
            task = _Task(self.work.number(), job, runner.id)
            self.tasks[task.id] = task
        workflow = {"jobs": {f"job-{job.id}": {"steps": [{"run": job.script}]}}}
        shown = {
            "id": str(task.id),
            "workflowPayload": base64.b64encode(json.dumps(workflow).encode()).decode(),
            "context": {"run_id": str(job.run), "run_attempt": str(job.attempt)},
        }
        return 200, {"task": shown, "tasksVersion": "1"}

    def _task(self, runner: Runner, id: str) -> _Task:
        task = self.tasks[int(id)]
        if task.runner != runner.id:
            raise Refusal(500, "update task: invalid runner for task")
        return task

    def _updatetask(self, call: Call) -> tuple[int, object]:
        state = checked(call.body, {"state": dict}, {"outputs": dict})["state"]
        with self.work.lock:
            runner = self._caller(call)
            task = self._task(runner, state["id"])
            if "result" in state and not task.ended:
                self._end(task, runner, state["result"])
            elif not task.ended:
                self.work.program("alive", {"key": runner.key, "job": str(task.job.id)})
            shown = {"id": state["id"]}
            return 200, {"state": {**shown, "result": "RESULT_CANCELLED"} if task.ended else shown}

    def _end(self, task: _Task, runner: Runner, result: str) -> None:
        task.ended = True
        task.job.cancelling = result == "RESULT_CANCELLED"
        code = "0" if result == "RESULT_SUCCESS" else "1"
        body = {"key": runner.key, "job": str(task.job.id), "code": code, "log": task.log}
        self.work.program("done", body)

    def _updatelog(self, call: Call) -> tuple[int, object]:
        body = checked(call.body, {"taskId": str, "index": str, "rows": list}, {"noMore": bool})
        with self.work.lock:
            task = self._task(self._caller(call), body["taskId"])
            task.log += "".join(f"{row['content']}\n" for row in body["rows"])
        return 200, {"ackIndex": str(int(body["index"]) + len(body["rows"]))}
