"""What an agent is told when it starts: one JSON document."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GONE", "GUESTS", "RANK_ENDED", "TROUBLE", "UNSTORED", "Config"]

# What an agent exits with, for whoever keeps machines alive:
RANK_ENDED = 0  # this machine is not needed any more
TROUBLE = 70  # something went wrong; another machine should try
GONE = 75  # it was told to go and has stored its work; another machine should go on

GUESTS = "guests"  # the folder of a machine with the pids of commands that run beside its script
UNSTORED = "unstored"  # the folder of a machine in which it leaves what it could not store


@dataclass(frozen=True)
class Config:
    """Where the task is and how this machine behaves. Times are in seconds.

    `store` and `store_options`: the task's store, as obstore takes it.
    `machine`: this machine's name. `folder`: its disk; the workdir goes to `folder`/workdir.
    `dead`: machines that are known to be gone, so that their ranks can be taken over at once.
    `lifeline`: end as on a spot notice when standard input is closed.
    `ttl`: a machine that was silent for this long may be replaced by another.
    `rank`: the only one that this machine may carry out; -1: any.
    `notice`: what the cloud gives a machine that it takes away; 0: not known, or it takes none.
    `address`: of this machine, for the others of a gang; empty: of the way to the internet.
    `cloud_mpi`: it is the cloud that starts MPI's servers and tells `mpirun` where they are.
    `together`: all machines of the task are on this one computer.
    `refused`: why no script may run here; each rank that this machine takes fails of it.
    `grace`: from SIGTERM to SIGKILL. `look`: how often to see whether somebody follows the log.
    """

    store: str
    machine: str
    folder: str
    store_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    dead: tuple[str, ...] = ()
    lifeline: bool = False
    rank: int = -1
    ttl: float = 60.0
    grace: float = 30.0
    look: float = 2.0
    snapshot_every: float = 10.0
    notice: float = 0.0
    address: str = ""
    together: bool = False
    refused: str = ""
    cloud_mpi: bool = False

    @classmethod
    def parse(cls, text: str) -> Config:
        """Read the document; refuses what it does not know."""
        try:
            data = json.loads(text)
            return cls(**{**data, "dead": tuple(data.get("dead", ()))})
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidInput("config", f"invalid configuration of the agent: {error}") from error

    def text(self) -> str:
        """The document."""
        return json.dumps(asdict(self))
