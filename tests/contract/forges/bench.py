"""A forge and a cloud to try runners on."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn import forges, runners
from sojourn.core.events import Event, Note, Warned
from sojourn.forges.forge import Registered
from tests.contract.clouds.kit import Kit
from tests.simforge.server import SimForge
from tests.simforge.work import Job
from tests.support.waiting import until

__all__ = ["Bench"]


class Bench:
    """Launches runners, and has jobs for them."""

    def __init__(self, forge: SimForge, kit: Kit) -> None:
        self.forge = forge
        self.kit = kit
        self.launched: list[runners.Launched] = []
        self.told: list[str] = []

    def options(self, **more: Any) -> dict[str, Any]:
        forge = self.forge
        given = {"driver": forge.driver, "repo": forge.repo, "token": forge.token}
        return {**given, "cloud": self.kit.cloud, "single": False, "idle_timeout": 60, **more}

    def needs(self, setting: str) -> None:
        """Skip a test of what the driver declares that its forge cannot have."""
        if why := forges.lacking(self.forge.driver).get(setting):
            pytest.skip(f"{self.forge.driver}: {why}")

    def launch(self, **more: Any) -> runners.Launched:
        made = runners.launch(on_event=self.hear, **self.options(**more))
        assert made is not None
        self.launched.append(made)
        return made

    def hear(self, event: Event) -> None:
        if isinstance(event, Note | Warned):
            self.told.append(event.message)

    def job(self, script: str = "echo done", *labels: str) -> Job:
        return self.forge.work.queue(script, *labels)

    def working(self, runner: runners.Launched, job: Job) -> None:
        """Wait until it carries a job out, and its forge says so, if it ever does: some are told
        later than that the job was fetched."""
        until(lambda: job.status == "in_progress")
        until(lambda: _is_busy(runner.registered(self.forge.token)))

    def finished(self, job: Job, seconds: float = 30) -> Job:
        until(lambda: self.forge.work.settled(job).status == "completed", seconds)
        return job

    def ended(self, runner: runners.Launched, seconds: float = 30) -> None:
        until(lambda: runner.status().state.ended, seconds)

    def clear(self) -> None:
        for runner in self.launched:
            if runner.exists():
                runner.remove(token=self.forge.token, force=True, repo=self.forge.repo)
        assert self.forge.work.runners == {}


def _is_busy(found: Registered | None) -> bool:
    return found is not None and found.busy is not False
