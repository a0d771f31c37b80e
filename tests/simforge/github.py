"""GitHub's API for self-hosted runners, as far as it is documented and we use it."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

from tests.simforge.server import PROGRAMS, Call, Refusal, SimForge, checked, packed
from tests.simforge.work import Job, Runner

__all__ = ["SimGitHub"]

_OWNER, _NAME = "acme", "widgets"
_RUN = r"/api/v3/repos/acme/widgets/actions/runs/(\d+)"


class SimGitHub(SimForge):
    """One repository, as GitHub Enterprise Server has it."""

    def __init__(self) -> None:
        super().__init__(token="ghp_secretOfTheOwner0000000000000000000000")
        self.registration_tokens: set[str] = set()
        repo = r"/api/v3/repos/acme/widgets"
        runners = repo + "/actions/runners"
        self.route("GET", repo, self._repository)
        self.route("GET", runners, self._list)
        self.route("GET", runners + "/downloads", self._downloads)
        self.route("POST", runners + "/registration-token", self._registration_token)
        self.route("POST", runners + "/generate-jitconfig", self._jit)
        self.route("DELETE", runners + r"/(\d+)", self._delete)
        self.route("GET", _RUN, self._run)
        self.route("GET", _RUN + "/jobs", self._jobs)
        self.route("POST", _RUN + "/cancel", self._cancel)
        self.route("POST", _RUN + "/rerun-failed-jobs", self._rerun)
        self.route("POST", "/api/v3/_register", self._register)

    @property
    def repo(self) -> str:
        return f"{self.url}/{_OWNER}/{_NAME}"

    def program(self) -> bytes:
        return packed(PROGRAMS / "github", PROGRAMS / "client.py")

    def answer(self, call: Call) -> tuple[int, object]:
        if call.path != "/api/v3/_register":
            if call.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refusal(401, "Bad credentials")
            if "application/vnd.github+json" not in call.headers.get("Accept", ""):
                raise Refusal(415, "Unsupported Media Type")
        return super().answer(call)

    def _repository(self, call: Call) -> tuple[int, object]:
        return 200, {"name": _NAME, "private": not self.public}

    def _list(self, call: Call) -> tuple[int, object]:
        size, page = int(call.query.get("per_page", "30")), int(call.query.get("page", "1"))
        if size > 100:
            raise Refusal(422, "per_page is at most 100")
        with self.work.lock:
            found = [self._shown(runner) for runner in self.work.runners.values()]
        part = found[(page - 1) * size : page * size]
        return 200, {"total_count": len(found), "runners": part}

    def _shown(self, runner: Runner) -> dict[str, Any]:
        return {
            "id": runner.id,
            "name": runner.name,
            "os": "linux",
            "status": "online" if runner.online else "offline",
            "busy": self.work.busy(runner),
            "labels": [{"id": 0, "name": label, "type": "custom"} for label in runner.labels],
        }

    def _downloads(self, call: Call) -> tuple[int, object]:
        name = "actions-runner-linux-{}-9.9.9.tar.gz"
        rows = [
            {
                "os": system,
                "architecture": architecture,
                "filename": name.format(architecture),
                "download_url": f"{call.base}/_download/{name.format(architecture)}",
                "sha256_checksum": self.program_sum(),
            }
            for system, architecture in (("linux", "x64"), ("linux", "arm64"), ("osx", "x64"))
        ]
        return 200, rows

    def _registration_token(self, call: Call) -> tuple[int, object]:
        token = secrets.token_hex(16)
        self.registration_tokens.add(token)
        return 201, {"token": token, "expires_at": "2999-01-01T00:00:00Z"}

    def _jit(self, call: Call) -> tuple[int, object]:
        body = checked(
            call.body,
            {"name": str, "runner_group_id": int, "labels": list},
            {"work_folder": str},
        )
        if not 1 <= len(body["labels"]) <= 100:
            raise Refusal(422, "labels must have 1 to 100 items")
        self._refuse_taken(body["name"])
        runner = self.work.register(body["name"], tuple(body["labels"]), single=True)
        made = base64.b64encode(json.dumps({"key": runner.key, "url": self.url}).encode()).decode()
        return 201, {"runner": self._shown(runner), "encoded_jit_config": made}

    def _refuse_taken(self, name: str) -> None:
        if any(runner.name == name for runner in self.work.runners.values()):
            raise Refusal(409, "Already exists - A runner with this name already exists.")

    def _register(self, call: Call) -> tuple[int, object]:
        """By the program, which has its own protocol for it."""
        if call.body["token"] not in self.registration_tokens:
            raise Refusal(404, "Http response code: NotFound from 'POST runner-registration'")
        with self.work.lock:
            if call.body["replace"] == "1":
                for runner in [*self.work.runners.values()]:
                    if runner.name == call.body["name"]:
                        del self.work.runners[runner.id]
            self._refuse_taken(call.body["name"])
            labels = ("self-hosted", "Linux", "X64", *call.body["labels"].split(","))
            runner = self.work.register(call.body["name"], labels, single=False)
        return 201, {"key": runner.key}

    def _delete(self, call: Call) -> tuple[int, object]:
        runner = self.work.runners.get(int(call.parts[0]))
        if runner is None:
            raise Refusal(404, "Not Found")
        if self.work.busy(runner):
            why = f'Runner "{runner.name}" is currently running a job and cannot be deleted.'
            raise Refusal(422, f"Bad request - {why}")
        del self.work.runners[runner.id]
        return 204, None

    def _job(self, call: Call) -> Job:
        found = (job for job in self.work.jobs.values() if job.run == int(call.parts[0]))
        job = next(found, None)
        if job is None:
            raise Refusal(404, "Not Found")
        return self.work.settled(job)

    def _run(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        return 200, {"id": job.run, "status": job.status, "conclusion": job.conclusion or None}

    def _jobs(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        row = {
            "id": job.id,
            "run_id": job.run,
            "status": job.status,
            "conclusion": job.conclusion or None,
            "runner_name": job.runner or None,
            "runner_id": job.runner_id or None,
        }
        return 200, {"total_count": 1, "jobs": [row]}

    def _cancel(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        if job.status == "completed":
            raise Refusal(409, "Cannot cancel a workflow run that is completed.")
        job.cancelling = True
        return 202, {}

    def _rerun(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        if job.status != "completed" or job.conclusion == "success":
            raise Refusal(403, "This workflow run cannot be retried")
        self.work.again(job)
        return 201, {}
