"""Calls that fail because a test says so. What fails by itself does not belong here."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.wire import AWSError

_THROTTLED = {
    "ec2": AWSError("RequestLimitExceeded", "Request limit exceeded.", 503),
    "s3": AWSError("SlowDown", "Please reduce your request rate.", 503),
}
_RATE = AWSError("Throttling", "Rate exceeded", 400)


@dataclass
class Fault:
    """Strikes calls of an operation, each time one that would have come through."""

    operation: str  # may have wildcards
    who: str
    skip: int
    times: int
    after: bool
    error: AWSError | None  # None: throttled, as the service puts it

    def concerns(self, call: Call) -> bool:
        return fnmatchcase(call.name, self.operation) and fnmatchcase(call.who, self.who)

    def raised(self, call: Call) -> AWSError:
        return self.error or _THROTTLED.get(call.service, _RATE)


class Faults:
    """All that were asked for and have not struck yet."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def strike(self, call: Call) -> Fault | None:
        """The fault that this call meets; it is used up by this."""
        struck = None
        for fault in [fault for fault in self._waiting if fault.concerns(call)]:
            if fault.skip:
                fault.skip -= 1
            elif struck is None:
                struck = fault
                fault.times -= 1
                if not fault.times:
                    self._waiting.remove(fault)
        return struck
