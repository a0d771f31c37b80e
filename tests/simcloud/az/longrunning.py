"""Operations that take their time, and how Resource Manager lets callers follow them.

Some providers answer with a status to ask for (Azure-AsyncOperation), some with a place where the
result will be (Location). What an operation does belongs to its provider.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.simcloud.az.schedule import Schedule
from tests.simcloud.az.timing import Timing
from tests.simcloud.az.tls import MANAGEMENT
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer

Finish = Callable[[], Any]
"""Does what the operation is for, and returns the content of the result, or raises an ArmError."""


@dataclass
class Operation:
    """One that was begun."""

    id: str
    place: str  # the path that its status and result are below
    version: str
    started: str
    ended: str = ""
    status: str = "InProgress"
    error: ArmError | None = None
    result: Any = None
    next_look: float = 0.0  # when a caller is to ask again, by this computer's clock

    @property
    def going_on(self) -> bool:
        return self.status == "InProgress"


class Operations:
    """All that were begun. Its methods are called with the lock held."""

    def __init__(self, subscription: str, schedule: Schedule, clock: Clock, timing: Timing) -> None:
        self._subscription = subscription
        self._schedule = schedule
        self._clock = clock
        self._timing = timing
        self._all: dict[str, Operation] = {}
        self.impatient: list[str] = []  # what was asked for too early

    def begin(
        self,
        provider: str,
        location: str,
        version: str,
        seconds: float,
        finish: Finish,
        ready: Callable[[], bool] = lambda: True,
    ) -> Operation:
        """Have something done after this time, when it is ready."""
        place = f"/subscriptions/{self._subscription}"
        if provider:
            place += f"/providers/{provider}/locations/{location}"
        operation = Operation(str(uuid.uuid4()), place, version, self._stamp())
        self._all[operation.id] = operation

        def do() -> None:
            if not operation.going_on:
                return  # another one took its place
            try:
                operation.result = finish()
                operation.status = "Succeeded"
            except ArmError as error:
                operation.error, operation.status = error, "Failed"
            operation.ended = self._stamp()

        self._schedule.after(seconds, do, ready)
        return operation

    def is_going_on(self, id: str) -> bool:
        return bool(id) and self._all[id].going_on

    def preempt(self, id: str) -> None:
        """Let a newer operation on the same resource take the place of this one."""
        operation = self._all.get(id)
        if operation and operation.going_on:
            operation.status, operation.ended = "Canceled", self._stamp()
            text = "The operation was preempted by a more recent operation."
            operation.error = ArmError(409, "OperationPreempted", text)

    def headers(self, operation: Operation, *ways: str) -> dict[str, str]:
        """How to follow it: `status`, `result` or both."""
        self._expect(operation)
        base = f"https://{MANAGEMENT}{operation.place}"
        ask = f"api-version={operation.version}"
        said = {"Retry-After": str(self._timing.retry_after)}
        if "status" in ways:
            said["Azure-AsyncOperation"] = f"{base}/operations/{operation.id}?{ask}"
        if "result" in ways:
            said["Location"] = f"{base}/operationresults/{operation.id}?monitor=true&{ask}"
        return said

    def tell_status(self, parameters: Mapping[str, str]) -> Answer:
        """What is at the address of Azure-AsyncOperation."""
        operation = self._asked(parameters)
        said: dict[str, Any] = {
            "startTime": operation.started,
            "status": operation.status,
            "name": operation.id,
        }
        if operation.ended:
            said["endTime"] = operation.ended
        if operation.error:
            said["error"] = operation.error.content()
        again = {"Retry-After": str(self._timing.retry_after)} if operation.going_on else {}
        self._expect(operation)
        return reply(200, said, again)

    def tell_result(self, parameters: Mapping[str, str]) -> Answer:
        """What is at the address of Location."""
        operation = self._asked(parameters)
        if operation.going_on:
            return reply(202, None, self.headers(operation, "result"))
        if operation.error:
            raise operation.error
        return reply(204 if operation.result is None else 200, operation.result)

    def _expect(self, operation: Operation) -> None:
        operation.next_look = time.monotonic() + self._timing.retry_after

    def _asked(self, parameters: Mapping[str, str]) -> Operation:
        operation = self._find(parameters)
        if operation.going_on and time.monotonic() < operation.next_look:
            self.impatient.append(operation.id)
        return operation

    def _find(self, parameters: Mapping[str, str]) -> Operation:
        found = self._all.get(parameters["operationId"])
        if found is None:
            raise ArmError(404, "NotFound", "The operation was not found.")
        return found

    def _stamp(self) -> str:
        return self._clock.today().isoformat()
