"""What workloads get from an attempt, without the attempt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sojourn.agent.config import Config
from sojourn.agent.telling import Telling
from sojourn.agent.workloads.workload import Host
from sojourn.core.task import Task
from sojourn.storage.lease import Lease, Leases
from sojourn.storage.store import StoreAddress, open_store


class Snapshots:
    """Counts what a workload asks for."""

    def __init__(self) -> None:
        self.asked = 0

    def soon(self) -> None:
        self.asked += 1


def host_in(
    folder: Path, task: Task, rank: int = 0, wake: Callable[[], None] = lambda: None
) -> Host:
    """A machine whose disk is this folder, for a rank of a task whose store is beside it."""
    url = f"file://{folder.parent}/kept"
    (folder.parent / "kept").mkdir(exist_ok=True)
    config = Config(url, f"m{rank}", str(folder), look=0.05)
    store = open_store(StoreAddress(url))
    leases = Leases(store, config.machine, task.parallelism, ttl=config.ttl)
    lease = Lease(rank, 1)
    snapshots: Any = Snapshots()
    return Host(config, store, task, lease, leases, snapshots, Telling(), wake)
