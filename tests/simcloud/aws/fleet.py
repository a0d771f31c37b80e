"""Instances with their machines: booting, ending, interrupting.

An instance is known to moto as well, which tells callers about it. Which instances there are to be
does not belong here, see `scaler`; nor what a machine can ask about itself, see `metadata`.
"""

from __future__ import annotations

import base64
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from tests.simcloud.aws.clock import Clock, Timing
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, Endpoint, MachineError, MachineSpec

_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}

USER = ("Client.UserInitiatedShutdown", "User initiated shutdown")
ITSELF = ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown")
SPOT = ("Server.SpotInstanceTermination", "Spot instance termination")
BROKEN = ("Server.InternalError", "Internal error on launch")


class Instance:
    """An instance and the machine that it has while it runs."""

    def __init__(self, region: str, record: Any, group: str, role: str) -> None:
        self.region = region
        self.record = record  # moto's
        self.group = group
        self.role = role
        self.spot = record.lifecycle == "spot"
        self.machine: RunningMachine | None = None
        self.target = "InService"  # the state that its group wants it in
        self.notice: datetime | None = None  # when it will be interrupted
        self.rebalance: datetime | None = None
        self.ends_at: float | None = None
        self.known_at = 0.0  # when EC2 begins to tell of it
        self.panics = False  # its machine is killed, to be started again
        if self.spot:
            record.spot_instance_request_id = f"sir-{uuid.uuid4().hex[:8]}"
        self.move("pending")

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
    def user_data(self) -> bytes:
        return base64.b64decode(str(self.record.user_data or ""))

    def move(self, state: str, why: tuple[str, str] | None = None) -> None:
        """Tell callers of another state."""
        self.record._state.name = state
        self.record._state.code = _CODES[state]
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
        endpoints: Callable[[Instance], tuple[Endpoint, ...]],
    ) -> None:
        self._host = host
        self._changed = changed
        self._clock = clock
        self._timing = timing
        self._endpoints = endpoints
        self._workers: set[threading.Thread] = set()
        self.instances: list[Instance] = []

    def add(self, instance: Instance) -> None:
        """Have it booted."""
        instance.known_at = self._clock.now() + self._timing.instance_ready
        self.instances.append(instance)
        self._start(self._boot, instance)

    @property
    def has_machines(self) -> bool:
        return self._host is not None

    def find(self, instance_id: str) -> Instance | None:
        return next((each for each in self.instances if each.id == instance_id), None)

    def newest(self) -> set[str]:
        """The ids of those that EC2 does not tell of yet."""
        return {each.id for each in self.instances if each.known_at > self._clock.now()}

    def terminate(self, instance: Instance, why: tuple[str, str] = USER) -> None:
        """As on a call: the machine is asked to shut down, and killed if it does not."""
        if instance.state in ("pending", "running"):
            instance.move("shutting-down", why)
            self._start(self._shut_down, instance, self._timing.shutdown)
        elif instance.state == "stopped":
            self._gone(instance, why)

    def take(self, instance: Instance, why: tuple[str, str] = SPOT) -> None:
        """Take its machine away without a word."""
        if instance.state in ("pending", "running", "shutting-down"):
            instance.move("shutting-down", why)
            self._start(self._shut_down, instance, 0.0)

    def settle(self) -> None:
        """Wait for the threads of this process; the host has been closed, or was never there."""
        while True:
            with self._changed:
                workers = list(self._workers)
            if not workers:
                return
            for worker in workers:
                worker.join()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        def run() -> None:
            try:
                work(*arguments)
            finally:
                with self._changed:
                    self._workers.discard(threading.current_thread())
                    self._changed.notify_all()

        worker = threading.Thread(target=run, name=work.__name__, daemon=True)
        self._workers.add(worker)
        worker.start()

    def _boot(self, instance: Instance) -> None:
        ready = self._clock.now() + self._timing.launch
        with self._changed:
            while instance.state == "pending" and (left := ready - self._clock.now()) > 0:
                self._changed.wait(left)
            if instance.state != "pending":
                self._gone(instance)
                return
        machine = self._make(instance)
        with self._changed:
            instance.machine = machine
            if self._host and machine is None:
                self._gone(instance, BROKEN)
            elif instance.state == "pending":
                instance.move("running")
            elif instance.state == "shutting-down" and machine is None:
                self._gone(instance)
        if machine and instance.state == "shutting-down":
            machine.kill()

    def _make(self, instance: Instance) -> RunningMachine | None:
        if self._host is None:
            return None
        spec = MachineSpec(
            instance.id,
            instance.user_data,
            self._endpoints(instance),
            hostname=str(instance.record.private_dns_name).partition(".")[0],
            on_end=lambda machine: self._ended(instance, machine),
        )
        try:
            return self._host.boot(spec)
        except MachineError:
            return None  # the host is closed

    def _ended(self, instance: Instance, machine: RunningMachine) -> None:
        """A machine is gone, by itself or because of us."""
        with self._changed:
            stays = instance.record.instance_initiated_shutdown_behavior == "stop"
            if instance.state == "shutting-down":
                self._gone(instance)
            elif machine.end is End.RESTARTED or instance.panics:
                self._start(self._restart, instance, machine)
            elif machine.end is End.POWERED_OFF and stays:
                instance.move("stopped", ITSELF)
            else:
                self._gone(instance, ITSELF if machine.end is End.POWERED_OFF else BROKEN)
            self._changed.notify_all()

    def _restart(self, instance: Instance, machine: RunningMachine) -> None:
        """To the cloud, it was there all the time."""
        assert self._host
        with suppress(MachineError):  # the host is closed
            again = self._host.restart(machine)
            with self._changed:
                instance.machine, instance.panics = again, False
                ending = instance.state == "shutting-down"
                self._changed.notify_all()
            if ending:
                again.kill()

    def _shut_down(self, instance: Instance, within: float) -> None:
        machine = instance.machine
        if machine is None:
            with self._changed:
                if self._host is None:
                    self._gone(instance)
            return  # what boots looks at the state when it has
        if within:
            machine.power_button()
        if not machine.wait(within):
            machine.kill()

    def _gone(self, instance: Instance, why: tuple[str, str] | None = None) -> None:
        if instance.state == "terminated":
            return
        reason, text = instance.record.state_reason, instance.record._reason
        instance.record.terminate()
        instance.record.state_reason, instance.record._reason = reason, text
        instance.move("terminated", why)
