"""A laptop with an Azure subscription whose machines only say that they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Member
from sojourn.core.status import Status
from sojourn.core.task import Storage, Task
from sojourn.engine import creation, lifecycle, observe, removal
from tests.simcloud.az.account import SimAzure
from tests.support.waiting import until

ID = TaskId.for_name("faults", {})
SCRIPT = "#!/bin/sh\necho done\n"


class Laptop:
    """Every verb, each as a command of its own: nothing is remembered but connections."""

    def __init__(self, sim: SimAzure) -> None:
        self.sim = sim
        self.id = ID
        self.account = Account()
        self.workdir = ""
        self.events: list[Any] = []

    @property
    def cloud(self) -> AzureCloud:
        return AzureCloud(self.account)

    @property
    def ctx(self) -> Context:
        return Context(self.events.append)

    def task(self, **more: Any) -> Task:
        storage = Storage(workdir=self.workdir, output="output" if self.workdir else "")
        return Task(SCRIPT, cloud="az", **{"storage": storage, **more})

    def create(self, ctx: Context | None = None, **more: Any) -> None:
        launch = creation.Launch(ID, self.task(**more), {"SECRET": "of the task"})
        creation.create(ctx or self.ctx, self.cloud, launch)

    def status(self) -> Status:
        return observe.status(self.ctx, self.cloud, ID)

    def stop(self) -> None:
        lifecycle.stop(self.ctx, self.cloud, ID)

    def start(self) -> None:
        lifecycle.start(self.ctx, self.cloud, ID)

    def delete(self) -> None:
        removal.delete(self.ctx, self.cloud, ID)

    def exists(self) -> bool:
        return lifecycle.exists(self.ctx, self.cloud, ID)

    def machines(self) -> tuple[Member, ...]:
        fleet = self.cloud.scaler(ID).fleet(self.ctx)
        assert fleet
        return fleet.machines

    def calls_of(self, verb: Callable[[], object]) -> list[str]:
        """The calls that a verb makes, by name."""
        self.sim.calls.clear()
        verb()
        return [call.name for call in self.sim.calls]

    def has_all(self) -> bool:
        """Whether everything that a task has is there, and a machine comes soon."""
        fleet = self.cloud.scaler(ID).fleet(self.ctx)
        if not fleet or fleet.wanted != 1:
            return False
        until(lambda: any(line.startswith("instance") for line in self.sim.inventory()))
        kinds = [line.split()[0] for line in self.sim.inventory()]
        return kinds.count("role") == 5 and set(kinds) >= {
            *("resourceGroups", "storageAccounts", "containers", "blob"),
            *("userAssignedIdentities", "virtualNetworks", "subnets", "networkSecurityGroups"),
            *("virtualMachineScaleSets", "autoscaleSettings"),
        }
