"""What a rank tells the others of its gang about itself, and what its script learns of them."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

from sojourn.agent.shared import Shared
from sojourn.storage.gangs import Member

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.agent.config import Config
    from sojourn.agent.gang import GangLife
    from sojourn.agent.mpi import MpiHost
    from sojourn.core.task import Task
    from sojourn.storage.lease import Lease

__all__ = ["describe", "gang_variables"]

# An address for documentation that nobody has: nothing is sent, only a route is looked up.
_ANYWHERE = ("192.0.2.1", 9)
_HOSTS = "hosts"


def describe(config: Config, lease: Lease, mpi: MpiHost | None) -> Member:
    """This machine, as the others can reach it."""
    address = config.address or _own_address()
    port, keys = _free_port(address), mpi.keys() if mpi else {}
    return Member(lease.rank, lease.attempt, config.machine, address, port, keys=keys)


def gang_variables(task: Task, gang: GangLife, folder: Path, rank: int) -> dict[str, str]:
    """The variables by which scripts and the usual libraries find the other ranks.

    User's own variables of these names win: they are not ours.
    """
    hosts = folder / "gang" / _HOSTS
    text = "".join(f"{member.address}\n" for member in gang.members)
    Shared(hosts.parent).write(hosts.name, text.encode())
    main = gang.members[0]
    port, ranks = str(main.port), str(task.parallelism)
    return {
        "SOJOURN_HOSTS": str(hosts),
        "SOJOURN_MAIN_ADDRESS": main.address,
        "SOJOURN_MAIN_PORT": port,
        "SOJOURN_MARK": gang.mark_command,
        # torchrun and PyTorch
        "MASTER_ADDR": main.address,
        "MASTER_PORT": port,
        "WORLD_SIZE": ranks,
        "RANK": str(rank),
        "NODE_RANK": str(rank),
        # JAX
        "JAX_COORDINATOR_ADDRESS": f"{main.address}:{port}",
        "JAX_NUM_PROCESSES": ranks,
        "JAX_PROCESS_ID": str(rank),
    }


def _own_address() -> str:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(_ANYWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"  # without a network, all are here


def _free_port(address: str) -> int:
    with closing(socket.socket()) as found:
        try:
            found.bind((address, 0))
        except OSError:
            found.bind(("", 0))
        return int(found.getsockname()[1])
