"""Operations of Compute Engine: what takes a while, how far it is, and how it ended.

What is done does not belong here: it comes as functions.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simcloud.common.clock import Clock
from tests.simcloud.gcp.project import PROJECT, new_id, timestamp
from tests.simcloud.gcp.store import link
from tests.simcloud.gcp.timing import Timing
from tests.simcloud.gcp.wire import GCPError, not_found

_UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_MESSAGES = {400: "BAD REQUEST", 403: "FORBIDDEN", 404: "NOT FOUND", 409: "CONFLICT",
             500: "INTERNAL SERVER ERROR", 503: "SERVICE UNAVAILABLE"}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """How an operation, or the creation of an instance, fails."""

    code: str
    message: str
    status: int = 400
    details: tuple[dict[str, Any], ...] = ()

    def described(self) -> dict[str, Any]:
        details = {"errorDetails": list(self.details)} if self.details else {}
        return {"code": self.code, "message": self.message, **details}


@dataclass
class Operation:
    """One of them. `ready` says when it can end, `end` does what it was for."""

    name: str
    scope: str  # `zones/Z`, `regions/R` or `global`
    kind: str
    target: str
    target_id: str
    user: str
    inserted: str
    due: float
    ready: Callable[[], bool] = lambda: True
    end: Callable[[], None] = lambda: None
    undo: Callable[[], None] = lambda: None  # instead, if it fails
    failure: Failure | None = None
    done: bool = False
    ended: str = ""
    client_id: str = ""
    id: str = field(default_factory=new_id)

    @property
    def path(self) -> str:
        return f"projects/{PROJECT}/{self.scope}/operations/{self.name}"

    def described(self) -> dict[str, Any]:
        scope, _, place = self.scope.partition("/")
        where = {scope[:-1]: link(f"projects/{PROJECT}/{self.scope}")} if place else {}
        answer: dict[str, Any] = {
            "kind": "compute#operation",
            "id": self.id,
            "name": self.name,
            "operationType": self.kind,
            "targetLink": link(self.target),
            "targetId": self.target_id,
            "status": "DONE" if self.done else "RUNNING",
            "user": self.user,
            "progress": 100 if self.done else 0,
            "insertTime": self.inserted,
            "startTime": self.inserted,
            "selfLink": link(self.path),
            **where,
        }
        if self.client_id:
            answer["clientOperationId"] = self.client_id
        if self.done:
            answer["endTime"] = self.ended
        if self.done and self.failure:
            answer["error"] = {"errors": [self.failure.described()]}
            answer["httpErrorStatusCode"] = self.failure.status
            answer["httpErrorMessage"] = _MESSAGES.get(self.failure.status, "ERROR")
        return answer


class Operations:
    """All that there were. The scaler's thread has them go on."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._requests: dict[tuple[str, str], Operation] = {}
        self.all: dict[str, Operation] = {}
        self.failures: list[tuple[str, Failure]] = []  # that a test asked for, by kind of call

    def start(
        self,
        scope: str,
        call: str,
        kind: str,
        target: str,
        target_id: str,
        user: str,
        request_id: str = "",
        takes: float = 0.0,
        **behaviour: Any,
    ) -> Operation:
        """Begin one; `call` is the method that asked for it. `takes`: longer than others."""
        name = f"operation-{int(self._clock.now() * 1000)}-{secrets.token_hex(6)}"
        due = self._clock.now() + self._timing.operation + takes
        inserted = timestamp(self._clock)
        operation = Operation(
            name, scope, kind, target, target_id, user, inserted, due, **behaviour
        )
        operation.client_id = request_id
        for asked in self.failures:
            if asked[0] == call:
                self.failures.remove(asked)
                operation.failure = asked[1]
                break
        self.all[operation.path] = operation
        if request_id:
            self._requests[call, request_id] = operation
        return operation

    def repeated(self, call: str, request_id: str) -> Operation | None:
        """The operation that an earlier request of the same id began."""
        if not request_id:
            return None
        if not _UUID.fullmatch(request_id) or not request_id.strip("0-"):
            message = f"Invalid value for field 'requestId': '{request_id}'. Must be a valid UUID."
            raise GCPError("invalid", message, 400)
        return self._requests.get((call, request_id))

    def get(self, path: str) -> Operation:
        found = self.all.get(path)
        if found is None:
            raise not_found(path)
        return found

    def advance(self) -> list[float]:
        """End those that can; in how many seconds others may."""
        now, due = self._clock.now(), []
        for operation in list(self.all.values()):
            if operation.done:
                continue
            if operation.due > now:
                due.append(operation.due - now)
            elif operation.failure or operation.ready():
                (operation.undo if operation.failure else operation.end)()
                operation.done = True
                operation.ended = timestamp(self._clock)
        return due
