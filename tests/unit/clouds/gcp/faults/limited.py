"""A laptop whose user may do what the documentation says, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.task import Storage
from sojourn.engine import observe, results
from tests.simcloud.gcp import rights
from tests.simcloud.gcp.account import SimGCP
from tests.unit.clouds.gcp.faults.laptop import ID, Laptop

PAGE = Path(__file__).parents[5] / "docs" / "gcp.md"
NAME = "limited"


def documented() -> dict[str, Any]:
    """The role as the page has it."""
    section = PAGE.read_text().split("## Permissions", 1)[1]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block
    found: dict[str, Any] = json.loads(block[1])
    return found


class Limited:
    """Does every verb, and knows which permissions each of them was asked for."""

    def __init__(self, sim: SimGCP, laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sim = sim
        self.laptop = laptop
        self.used: dict[str, set[str]] = {}
        self.now = ""
        for name, value in sim.user(documented()["includedPermissions"], NAME).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(rights, "needed", self._noting(rights.needed))

    def _noting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def needed(call: Any, *more: Any) -> Any:
            found = list(real(call, *more))
            if call.who.startswith(f"{NAME}@"):
                self.used.setdefault(self.now, set()).update(need.permission for need in found)
            return iter(found)

        return needed

    def allow(self, permissions: Iterable[str]) -> None:
        [role] = [each for each in self.sim.project.roles.custom.values() if each.title == NAME]
        role.permissions = set(permissions)

    def verbs(self) -> dict[str, Callable[[], object]]:
        """In the order in which they can be done."""
        laptop, ctx = self.laptop, self.laptop.ctx
        return {
            "list": lambda: list(laptop.cloud.tasks(ctx)),
            "plan": lambda: laptop.cloud.check(ctx, laptop.task(machine="m+t4")),
            "create": laptop.create,
            "overview": lambda: laptop.cloud.states(ctx, [ID]),
            "status": laptop.status,
            "events": lambda: laptop.cloud.scaler(ID).events(ctx),
            "logs": lambda: list(observe.logs(ctx, laptop.cloud, ID)),
            "pull": lambda: results.pull(ctx, laptop.cloud, ID),
            "interrupt": lambda: self._interrupt(notice=True),
            "kill": lambda: self._interrupt(notice=False),
            "stop": laptop.stop,
            "start": laptop.start,
            "delete": laptop.delete,
        }

    def _interrupt(self, *, notice: bool) -> None:
        def running() -> list[str]:
            return [each.id for each in self.sim.instances() if each.status == "RUNNING"]

        self.laptop.interrupt(running, notice=notice)

    def do(self, verb: str) -> None:
        self.now = verb
        self.verbs()[verb]()

    def prepare(self, verb: str) -> None:
        """A task for the verb to be done on; for a creation, none."""
        self.allow(documented()["includedPermissions"])
        self.now = "preparation"
        if verb in ("create", "list", "plan"):
            if self.sim.inventory():
                self.laptop.delete()
            return
        self.laptop.create()
        if verb == "start":
            self.laptop.stop()

    def contained(self, container: str) -> dict[str, Any]:
        return {"storage": Storage(container=container)}
