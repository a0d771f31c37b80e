"""Workloads: the kinds of work that machines carry out, one module each.

A plain script, a service that stays and may be idle, a CI runner, a gang, and MPI. What every
attempt does, whatever its workload, is in `agent.attempt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.agent.workloads.gang import Gang
from sojourn.agent.workloads.mpi import MpiGang
from sojourn.agent.workloads.runner import RunnerLife
from sojourn.agent.workloads.service import Service
from sojourn.agent.workloads.workload import Workload

if TYPE_CHECKING:
    from sojourn.agent.workloads.workload import Host

__all__ = ["workload_of"]


def workload_of(host: Host) -> Workload:
    """What the task of this attempt is."""
    task = host.task
    if task.runner:
        return RunnerLife(host, task.runner)
    if task.mpi:
        return MpiGang(host, task.mpi)
    if task.gang:
        return Gang(host)
    if task.stay:
        return Service(host)
    return Workload(host)
