"""GitLab's API for runners and jobs, as far as it is documented and we use it."""

from __future__ import annotations

import secrets
from typing import Any

from tests.simforge.server import PROGRAMS, Call, Refusal, SimForge, bundled, checked
from tests.simforge.work import Job, Runner

__all__ = ["SimGitLab"]

_SCOPES = {"read_api": ("GET",), "api": ("GET", "POST", "PUT", "DELETE")}
_PROJECT, _GROUP = 7, 3


class SimGitLab(SimForge):
    """One project in a group, on a host that has GitLab below a path, as many have.

    `scopes`, `expires_at`: those of the owner's token. `tells_status`: whether its lists of
    runners tell who is busy, as those of newer versions do.
    """

    def __init__(self, prefix: str = "/gitlab") -> None:
        super().__init__(token="glpat-secretOfTheOwner00")
        self.prefix = prefix
        self.scopes = ["api"]
        self.expires_at: str | None = "2999-01-01"
        self.tells_status = True
        self.kinds: dict[int, str] = {}
        for method, path, handler in (
            ("GET", "/version", self._version),
            ("GET", "/personal_access_tokens/self", self._token),
            ("GET", "/projects/([^/]+)", self._project),
            ("GET", "/groups/([^/]+)", self._group),
            ("GET", "/projects/7/runners", self._project_runners),
            ("GET", "/groups/3/runners", self._group_runners),
            ("POST", "/user/runners", self._create),
            ("GET", r"/runners/(\d+)", self._details),
            ("PUT", r"/runners/(\d+)", self._update),
            ("DELETE", r"/runners/(\d+)", self._delete),
            ("DELETE", "/runners", self._leave),
            ("GET", r"/runners/(\d+)/jobs", self._runner_jobs),
            ("GET", r"/projects/7/jobs/(\d+)", self._job_details),
            ("POST", r"/projects/7/jobs/(\d+)/cancel", self._cancel),
            ("POST", r"/projects/7/jobs/(\d+)/retry", self._retry),
        ):
            self.route(method, f"{prefix}/api/v4{path}", handler)

    @property
    def repo(self) -> str:
        return f"{self.url}{self.prefix}/acme/widgets"

    def program(self) -> bytes:
        return bundled(PROGRAMS / "gitlab", PROGRAMS / "client.py")

    def download(self, path: str) -> bytes:
        if not path.endswith("/release.sha256"):
            return self.program()
        names = ("linux-amd64", "linux-arm64", "darwin-arm64", "windows-amd64.exe")
        rows = (f"{self.program_sum()} *binaries/gitlab-runner-{name}\n" for name in names)
        return "".join(rows).encode()

    def answer(self, call: Call) -> tuple[int, object]:
        own = f"{self.prefix}/api/v4"
        if not call.path.startswith(own):
            return 404, b"<html>not here</html>"
        if (call.method, call.path) != ("DELETE", f"{own}/runners"):
            self._authorize(call)
        return super().answer(call)

    def _authorize(self, call: Call) -> None:
        if call.headers.get("PRIVATE-TOKEN") != self.token:
            raise Refusal(401, "401 Unauthorized")
        if call.path.endswith("/personal_access_tokens/self"):
            return
        if call.path.endswith("/user/runners") and "create_runner" in self.scopes:
            return
        if not any(call.method in _SCOPES.get(scope, ()) for scope in self.scopes):
            raise Refusal(403, "insufficient_scope")

    def _version(self, call: Call) -> tuple[int, object]:
        return 200, {"version": "18.11.0", "revision": "0000000"}

    def _token(self, call: Call) -> tuple[int, object]:
        return 200, {"id": 1, "scopes": self.scopes, "expires_at": self.expires_at}

    def _project(self, call: Call) -> tuple[int, object]:
        if call.parts[0] not in ("acme%2Fwidgets", str(_PROJECT)):
            raise Refusal(404, "404 Project Not Found")
        return 200, {"id": _PROJECT, "visibility": "public" if self.public else "private"}

    def _group(self, call: Call) -> tuple[int, object]:
        if call.parts[0] not in ("acme", str(_GROUP)):
            raise Refusal(404, "404 Group Not Found")
        return 200, {"id": _GROUP, "visibility": "private"}

    def _project_runners(self, call: Call) -> tuple[int, object]:
        return self._list(call)

    def _group_runners(self, call: Call) -> tuple[int, object]:
        return self._list(call)

    def _list(self, call: Call) -> tuple[int, object]:
        wanted = call.query.get("type")
        with self.work.lock:
            rows = [
                self._row(runner)
                for runner in self.work.runners.values()
                if wanted in (None, self.kinds.get(runner.id))
            ]
        return 200, _page(call, rows, {"type", "status", "paused", "tag_list"})

    def _row(self, runner: Runner) -> dict[str, Any]:
        never = "offline" if runner.seen > 0 else "never_contacted"
        row = {
            "id": runner.id,
            "description": runner.name,
            "name": None,
            "runner_type": self.kinds[runner.id],
            "is_shared": False,
            "paused": runner.paused,
            "online": runner.online,
            "status": "online" if runner.online else never,
        }
        if self.tells_status:
            row["job_execution_status"] = "active" if self.work.busy(runner) else "idle"
        return row

    def _create(self, call: Call) -> tuple[int, object]:
        optional = {"description": str, "tag_list": list, "run_untagged": bool, "paused": bool}
        more = {"locked": bool, "access_level": str, "maintenance_note": str}
        numbers = {"maximum_timeout": int, "project_id": int, "group_id": int}
        body = checked(call.body, {"runner_type": str}, {**optional, **more, **numbers})
        kind = body["runner_type"]
        owner = {"project_type": ("project_id", _PROJECT), "group_type": ("group_id", _GROUP)}
        if kind not in owner or body.get(owner[kind][0]) != owner[kind][1]:
            raise Refusal(400, "runner_type does not have a valid value")
        if kind != "project_type" and "locked" in body:
            raise Refusal(400, "locked is for runners of projects")
        if not body.get("tag_list") and not body.get("run_untagged", True):
            raise Refusal(400, "Tags list can not be empty when runner is not allowed to pick jobs")
        runner = self.work.register(body["description"], tuple(body["tag_list"]), single=False)
        self.kinds[runner.id] = kind
        runner.key = f"glrt-{secrets.token_urlsafe(15)}"
        return 201, {"id": runner.id, "token": runner.key, "token_expires_at": None}

    def _runner(self, call: Call) -> Runner:
        found = self.work.runners.get(int(call.parts[0]))
        if found is None:
            raise Refusal(404, "404 Runner Not Found")
        return found

    def _details(self, call: Call) -> tuple[int, object]:
        runner = self._runner(call)
        return 200, {**self._row(runner), "tag_list": list(runner.labels), "locked": True}

    def _update(self, call: Call) -> tuple[int, object]:
        body = checked(call.body, {"paused": bool}, {})
        runner = self._runner(call)
        runner.paused = body["paused"]
        return 200, self._row(runner)

    def _delete(self, call: Call) -> tuple[int, object]:
        """Whatever it is doing."""
        del self.work.runners[self._runner(call).id]
        return 204, None

    def _leave(self, call: Call) -> tuple[int, object]:
        """By the token of the runner itself."""
        body = checked(call.body, {"token": str}, {})
        with self.work.lock:
            found = [each for each in self.work.runners.values() if each.key == body["token"]]
            if not found:
                raise Refusal(403, "403 Forbidden")
            del self.work.runners[found[0].id]
        return 204, None

    def _runner_jobs(self, call: Call) -> tuple[int, object]:
        runner = self._runner(call)
        with self.work.lock:
            jobs = [job for job in self.work.jobs.values() if job.runner_id == runner.id]
            rows = [self._job_row(job) for job in jobs]
        wanted = call.query.get("status")
        rows = [row for row in rows if wanted in (None, row["status"])]
        if call.query.get("sort", "desc") == "desc":
            rows.reverse()
        return 200, _page(call, rows, {"status", "order_by", "sort", "system_id"})

    def _job_row(self, job: Job) -> dict[str, Any]:
        """A machine that is silent is not noticed for an hour."""
        status = {"queued": "pending", "in_progress": "running"}.get(job.status)
        if status == "running" and job.cancelling:
            status = "canceling"
        status = status or {"failure": "failed", "cancelled": "canceled"}.get(job.conclusion)
        row = {"id": job.id, "status": status or job.conclusion, "project": {"id": _PROJECT}}
        if row["status"] == "failed":
            row["failure_reason"] = "stuck_or_timeout_failure" if job.lost else "script_failure"
        return row

    def _job(self, call: Call) -> Job:
        job = self.work.jobs.get(int(call.parts[0]))
        if job is None:
            raise Refusal(404, "404 Not Found")
        return self.work.settled(job)

    def _job_details(self, call: Call) -> tuple[int, object]:
        return 200, self._job_row(self._job(call))

    def _cancel(self, call: Call) -> tuple[int, object]:
        if set(call.query) - {"force"}:
            raise Refusal(400, "unknown parameter")
        job = self._job(call)
        if call.query.get("force") == "true" and not job.cancelling:
            raise Refusal(400, "Job is not in canceling state")
        job.cancelling = True
        return 201, self._job_row(job)

    def _retry(self, call: Call) -> tuple[int, object]:
        job = self._job(call)
        if job.status != "completed":
            raise Refusal(403, "403 Forbidden - Job is not retryable")
        self.work.again(job)
        return 201, self._job_row(job)


def _page(call: Call, rows: list[dict[str, Any]], known: set[str]) -> list[dict[str, Any]]:
    if unknown := set(call.query) - known - {"page", "per_page"}:
        raise Refusal(400, f"{sorted(unknown)[0]} is not known")
    size, page = int(call.query.get("per_page", "20")), int(call.query.get("page", "1"))
    if not 1 <= size <= 100:
        raise Refusal(400, "per_page does not have a valid value")
    return rows[(page - 1) * size : page * size]
