"""What machines of every cloud are told: where their store is, and how patient they are."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from sojourn.clouds.vm.on_machine.settings import MachineSettings
from sojourn.clouds.vm.paths import HOST_KEYS, PROBLEMS
from sojourn.core.images import container_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.task import Task
    from sojourn.storage.store import StoreAddress

__all__ = ["machine_settings", "time_of"]

_TTL = 60.0  # seconds of silence after which a machine counts as lost
_GRACE = 30.0
_HEARTBEAT = 30.0  # seconds; how often a machine that stores its work asks for more time
_STORING = timedelta(hours=1)  # beyond the timeout, to store the last of its work
_ENDLESS = timedelta(days=3650)
_FAILURES = 10  # of the agent, after which a machine gives up
_RIGHTS_WITHIN = 60.0  # the same, for rights of an identity of the user's
_BOOT_WITHIN = 300.0  # seconds; new rights may not be known everywhere yet


def machine_settings(
    name: str,
    store: StoreAddress,
    task: Task,
    *,
    user: str,
    marks: bool,
    page: str,
    wheels: Sequence[str],
    notice: float = 0.0,
    grace: float = _GRACE,
) -> MachineSettings:
    """The settings that `vm.on_machine` reads; a cloud adds its own."""
    return MachineSettings(
        id=name,
        page=page,
        wheels=list(wheels),
        store=store.url,
        store_options=dict(store.options),
        problem_folder=PROBLEMS,
        host_keys=HOST_KEYS,
        minutes=time_of(task.timeout) // timedelta(minutes=1),
        marks=marks,
        given=bool(task.permission_set),
        gang=task.parallelism if task.gang else 0,
        notice=notice,
        heartbeat=_HEARTBEAT,
        ttl=_TTL,
        grace=grace,
        patience=_BOOT_WITHIN,
        rights_within=_RIGHTS_WITHIN,
        failures=_FAILURES,
        container=container_image(task.image),
        user=user,
        ssh_key=task.options.get("ssh_key", "").strip(),
    )


def time_of(timeout: int) -> timedelta:
    """How long a machine may live: the task's timeout, and an hour to store the last of its work.

    Whole minutes. No timeout is a long time: a machine whose users are all gone ends after all.
    """
    if not timeout:
        return _ENDLESS
    return timedelta(minutes=math.ceil(timeout / 60)) + _STORING
