"""What all simulated forges have in common: runners, and jobs that they carry out.

The runner programs of the tests speak with it at addresses below `/_program/`, which no real forge
has: the programs' own protocols are nobody's business but theirs.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field

from tests.support.waiting import patience

__all__ = ["Job", "Runner", "Work"]

OFFLINE_AFTER = 2.0  # seconds without a word of a runner
LOST_AFTER = 3.0  # seconds without a word of a job until it has failed
_MOST = 5  # times longer: whoever deletes a runner waits 20 seconds until its loss is noticed


def _silent(since: float, seconds: float) -> bool:
    """Whether there was no word for so long; on a busy computer a program may only be slow."""
    return time.monotonic() - since > min(patience(seconds), _MOST * seconds)


@dataclass
class Job:
    """One job of a run of its own."""

    id: int
    script: str
    labels: frozenset[str]
    run: int
    attempt: int = 1
    status: str = "queued"  # in_progress, completed
    conclusion: str = ""  # success, failure, cancelled
    runner: str = ""
    runner_id: int = 0
    log: str = ""
    cancelling: bool = False
    lost: bool = False  # nobody told how it ended, or its runner could not go on
    renewed: float = 0.0  # when its runner last told that it goes on


@dataclass
class Runner:
    """A runner; `key` is what its program logs in with."""

    id: int
    name: str
    labels: tuple[str, ...]
    single: bool
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    seen: float = float("-inf")
    paused: bool = False
    offline_after: float = OFFLINE_AFTER

    @property
    def online(self) -> bool:
        return not _silent(self.seen, self.offline_after)


class Work:
    """All jobs and runners; threads share it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.runners: dict[int, Runner] = {}
        self.jobs: dict[int, Job] = {}
        self.ever = 0  # runners that were registered
        self.lost_after = LOST_AFTER
        self.offline_after = OFFLINE_AFTER
        self._numbers = iter(range(101, 10**9))

    def number(self) -> int:
        with self.lock:
            return next(self._numbers)

    def register(self, name: str, labels: tuple[str, ...], *, single: bool) -> Runner:
        with self.lock:
            runner = Runner(self.number(), name, labels, single)
            runner.offline_after = self.offline_after
            self.runners[runner.id] = runner
            self.ever += 1
            return runner

    def queue(self, script: str, *labels: str) -> Job:
        with self.lock:
            number = self.number()
            self.jobs[number] = Job(number, script, frozenset(labels or ("cml",)), self.number())
            return self.jobs[number]

    def busy(self, runner: Runner) -> bool:
        with self.lock:
            self._lose()
            return any(
                job.runner_id == runner.id and job.status == "in_progress"
                for job in self.jobs.values()
            )

    def settled(self, job: Job) -> Job:
        """The job as it is now, losses included."""
        with self.lock:
            self._lose()
            return job

    def _lose(self) -> None:
        for job in self.jobs.values():
            if job.status == "in_progress" and _silent(job.renewed, self.lost_after):
                job.status, job.conclusion, job.lost = "completed", "failure", True
                if job.cancelling:
                    job.conclusion = "cancelled"

    def again(self, job: Job) -> None:
        """Queue a job that is over once more."""
        with self.lock:
            job.status, job.conclusion, job.cancelling, job.lost = "queued", "", False, False
            job.runner, job.runner_id, job.attempt = "", 0, job.attempt + 1

    def program(self, path: str, body: dict[str, str]) -> tuple[int, object]:
        """A call of a runner program."""
        with self.lock:
            runner = next((r for r in self.runners.values() if r.key == body.get("key")), None)
            if runner is None:
                return 410, {"message": "this runner is not registered"}
            runner.seen = time.monotonic()
            if path == "poll":
                return 200, {"job": self._next(runner)}
            job = self.jobs[int(body["job"])]
            if path == "alive":
                job.renewed = time.monotonic()
                return 200, {"cancel": job.cancelling or job.runner_id != runner.id}
            if path == "done" and job.runner_id == runner.id and job.status == "in_progress":
                job.status = "completed"
                job.log = body["log"]
                job.lost = body.get("aborted") == "1"
                job.conclusion = "success" if body["code"] == "0" else "failure"
                if job.cancelling:
                    job.conclusion = "cancelled"
                if runner.single:
                    del self.runners[runner.id]
                return 200, {}
            return 404, {"message": f"not found: {path}"}

    def _next(self, runner: Runner) -> dict[str, str] | None:
        self._lose()
        if runner.paused:
            return None
        for job in self.jobs.values():
            if job.status == "queued" and job.labels <= {*runner.labels, "self-hosted", "linux"}:
                job.status, job.renewed = "in_progress", time.monotonic()
                job.runner, job.runner_id = runner.name, runner.id
                return {
                    "id": str(job.id),
                    "run": str(job.run),
                    "attempt": str(job.attempt),
                    "script": job.script,
                }
        return None
