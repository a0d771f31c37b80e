"""The protocol between an attempt and its workload: the kind of work that a machine carries out.

An attempt calls the methods of `Workload` in the order in which they stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sojourn.agent.config import Config
    from sojourn.agent.process import RunningScript
    from sojourn.agent.restoring import Restoring
    from sojourn.agent.sync import Snapshots
    from sojourn.agent.telling import Telling
    from sojourn.core.context import Context
    from sojourn.core.report import Outcome, Report
    from sojourn.core.task import Task
    from sojourn.storage.lease import Lease, Leases
    from sojourn.storage.manifest import Manifest
    from sojourn.storage.store import Store

__all__ = ["End", "Host", "Workload"]


@dataclass(frozen=True)
class Host:
    """What an attempt shares with its workload. `wake`: ends the attempt's wait for anything."""

    config: Config
    store: Store
    task: Task
    lease: Lease
    leases: Leases
    snapshots: Snapshots
    telling: Telling
    wake: Callable[[], None]

    @property
    def folder(self) -> Path:
        """The disk of this machine, as far as it is ours."""
        return Path(self.config.folder)

    @property
    def workdir(self) -> Path:
        """Where the script runs."""
        return self.folder / "workdir"


@dataclass(frozen=True)
class End:
    """How an attempt ends whose workload has a script ended that would go on."""

    outcome: Outcome
    reason: str
    exit_code: int | None = None


class Workload:
    """A script of one rank that depends on nobody. Other kinds override what they do otherwise."""

    reason = ""  # why a script ended that the workload asked to

    def __init__(self, host: Host) -> None:
        self._host = host

    def restore(self, ctx: Context, restoring: Restoring) -> Manifest | None:
        """Fill the workdir; None: no script is to run, and `settle` knows how the rank ends."""
        return restoring.newest(ctx)

    def ready(self, ctx: Context) -> bool:
        """Wait until the script may start, its workdir being restored; False: it never may."""
        return True

    def prepare(self, ctx: Context, environment: Mapping[str, str]) -> None:
        """Do what the script needs. `environment`: the task's, with all that is secret."""

    def environment(self) -> Mapping[str, str]:
        """Variables that the script has beside those of every script."""
        return {}

    def program(self) -> str:
        """The text of the program to run."""
        return self._host.task.script

    def start(self, script: RunningScript) -> None:
        """The script has started."""

    def end(self) -> End | None:
        """How the script is to end now; None: it can go on."""
        return None

    @property
    def look_within(self) -> float:
        """Seconds until `end` should be asked again."""
        return float("inf")

    @property
    def again(self) -> bool:
        """Whether another attempt follows on this machine: what the script does is of no use."""
        return False

    def leave(self) -> None:
        """The script has ended for good: nobody outside is to count on this machine."""

    def stop(self) -> None:
        """Stop all that `start` began: the script has ended."""

    def settle(self, ctx: Context, report: Report) -> Report:
        """The final report, of an attempt whose own is this one and whose results are stored."""
        return report
