"""Machines of a task whose scripts have ended, and whose results the store does not take."""

from __future__ import annotations

import sojourn
from sojourn import api, clouds
from sojourn.clouds.vm.on_machine import marks
from sojourn.core.activity import Activity, Doing
from sojourn.core.ids import TaskId
from sojourn.core.status import State
from sojourn.storage.data import StoreData
from sojourn.storage.lease import Leases

__all__ = ["end_scripts", "listed"]


def end_scripts(handle: sojourn.Handle) -> dict[str, str]:
    """Each machine says so in its lease; returns what they mark at their group."""
    id = TaskId.parse(handle.id)  # noqa: A001
    data = clouds.load(handle.cloud).data(id)
    assert isinstance(data, StoreData)
    store = data._open()
    found: dict[str, str] = {}
    for rank, machine in enumerate(handle.machines()):
        leases = Leases(store, machine.id, 2, ttl=60.0, dead=(), rank=rank)
        lease = leases.take()
        assert lease
        assert leases.renew(lease, Activity.after(Doing.ENDED_FULL, 0))
        found |= marks.unstored(rank, lease.attempt)
    return found


def listed() -> State:
    """What `list` says of the only task."""
    [(_, status)] = api.overview()
    return status.state
