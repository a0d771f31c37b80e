"""Instances as EC2 has them, and the list of them.

An instance is known to moto as well, which tells callers about it; its machine is in its `life`.
Which instances there are to be does not belong here, see `scaler`; nor what a machine can ask about
itself, see `metadata`.
"""

from __future__ import annotations

import base64
import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.firewall import connects
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.life import Life, Lives, Phase
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, Endpoint, Login, MachineSpec

_STATES = {
    Phase.PENDING: ("pending", 0),
    Phase.RUNNING: ("running", 16),
    Phase.ENDING: ("shutting-down", 32),
    Phase.GONE: ("terminated", 48),
    Phase.STOPPED: ("stopped", 80),
}

USER = ("Client.UserInitiatedShutdown", "User initiated shutdown")
ITSELF = ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown")
SPOT = ("Server.SpotInstanceTermination", "Spot instance termination")
BROKEN = ("Server.InternalError", "Internal error on launch")

Endpoints = Callable[["Instance"], tuple[Endpoint, ...]]


class Instance:
    """An instance and the machine that it has while it runs."""

    def __init__(
        self,
        region: str,
        record: Any,
        group: str,
        role: str,
        logins: tuple[Login, ...] = (),
        disk: Path | None = None,
    ) -> None:
        self.region = region
        self.record = record  # moto's
        self._place = (str(record.vpc_id), str(record.private_ip))
        self.group = group
        self.role = role
        self.logins = logins
        self.disk = disk  # what its image has beside what all have
        self.spot = record.lifecycle == "spot"
        self.life: Life | None = None  # once it is launched
        self.endpoints: tuple[Endpoint, ...] = ()
        self.target = "InService"  # the state that its group wants it in
        self.notice: datetime | None = None  # when it will be interrupted
        self.rebalance: datetime | None = None
        self.ends_at: float | None = None
        self.known_at = 0.0  # when EC2 begins to tell of it
        if self.spot:
            record.spot_instance_request_id = f"sir-{uuid.uuid4().hex[:8]}"
        self._tell(Phase.PENDING)

    @property
    def id(self) -> str:
        return str(self.record.id)

    @property
    def type(self) -> str:
        return str(self.record.instance_type)

    @property
    def zone(self) -> str:
        return str(self.record.placement.zone)

    @property
    def state(self) -> str:
        return str(self.record.state)

    @property
    def machine(self) -> RunningMachine | None:
        return self.life.machine if self.life else None

    @property
    def public_address(self) -> str:
        """Empty: it has none."""
        return str(self.record.public_ip or "")

    @property
    def place(self) -> tuple[str, str]:
        """Its network, and its address there."""
        return self._place

    @property
    def user_data(self) -> bytes:
        return base64.b64decode(str(self.record.user_data or ""))

    # What its life asks and tells

    def spec(self, on_end: Callable[[RunningMachine], None]) -> MachineSpec:
        hostname = str(self.record.private_dns_name).partition(".")[0]
        return MachineSpec(
            self.id,
            self.user_data,
            self.endpoints,
            hostname=hostname,
            logins=self.logins,
            disk=self.disk,
            on_end=on_end,
        )

    def afterwards(self, end: End | None) -> tuple[Phase, tuple[str, str] | None]:
        if end is End.RESTARTED:
            return Phase.RUNNING, None
        if end is not End.POWERED_OFF:
            return Phase.GONE, BROKEN
        stays = self.record.instance_initiated_shutdown_behavior == "stop"
        return Phase.STOPPED if stays else Phase.GONE, ITSELF

    def moved(self, phase: Phase, why: tuple[str, str] | None) -> None:
        if phase is Phase.GONE:
            reason, text = self.record.state_reason, self.record._reason
            self.record.terminate()
            self.record.state_reason, self.record._reason = reason, text
        self._tell(phase, why)

    def _tell(self, phase: Phase, why: tuple[str, str] | None = None) -> None:
        self.record._state.name, self.record._state.code = _STATES[phase]
        if why:
            code, text = why
            self.record._reason = f"{text} ({datetime.now():%Y-%m-%d %H:%M:%S} GMT)"
            self.record.state_reason.code = code
            self.record.state_reason.message = f"{code}: {text}"


class Fleet:
    """All instances of the account. Each change of one is made with the lock held."""

    def __init__(
        self,
        host: Host | None,
        changed: threading.Condition,
        clock: Clock,
        timing: Timing,
        endpoints: Endpoints,
    ) -> None:
        self._lives = Lives(host, changed, clock)
        self._lives.firewall = connects
        self._clock = clock
        self._timing = timing
        self._endpoints = endpoints
        self.instances: list[Instance] = []

    def add(self, instance: Instance) -> None:
        """Have it booted."""
        instance.known_at = self._clock.now() + self._timing.instance_ready
        instance.endpoints = self._endpoints(instance)
        instance.life = Life(self._lives, instance)
        self.instances.append(instance)
        instance.life.boot(self._timing.launch)

    @property
    def has_machines(self) -> bool:
        return self._lives.host is not None

    def find(self, instance_id: str) -> Instance | None:
        return next((each for each in self.instances if each.id == instance_id), None)

    def newest(self) -> set[str]:
        """The ids of those that EC2 does not tell of yet."""
        return {each.id for each in self.instances if each.known_at > self._clock.now()}

    def terminate(self, instance: Instance, why: tuple[str, str] = USER) -> None:
        """As on a call: the machine is asked to shut down, and killed if it does not."""
        assert instance.life
        instance.life.end(self._timing.shutdown, why)

    def take(self, instance: Instance, why: tuple[str, str] = SPOT) -> None:
        """Take its machine away without a word; a stopped one has none."""
        assert instance.life
        if instance.life.phase is not Phase.STOPPED:
            instance.life.end(0.0, why)

    def capture(self, instance: Instance) -> Path | None:
        """What is on its disk now, for an image; None if there are no machines."""
        host = self._lives.host
        return host.capture(instance.machine) if host and instance.machine else None

    def settle(self) -> None:
        """Wait for the threads of this process; the host has been closed, or was never there."""
        self._lives.settle()
