"""What every call to a simulated cloud goes through, whatever the cloud is.

It is written down and watched, takes its time, meets faults and is answered; what the simulation
could not do is kept. Who the caller is and what it may do is the cloud's, in `answer_call`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import sleep
from typing import Generic, TypeVar

from tests.simcloud.common.faults import Call, Faults
from tests.simcloud.common.wire import Answer, Request

Called = TypeVar("Called", bound=Call)


class Gate(Generic[Called]):
    """Answers requests, one at a time but for the time that they are told to take."""

    refused: type[Exception]  # what a cloud's refusals are; all else is a defect

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self.faults = Faults()
        self.latency = 0.0
        self.watching: Callable[[Called], object] = lambda _: None
        self.calls: list[Called] = []
        self.defects: list[BaseException] = []  # what the simulation could not do

    def identify(self, request: Request) -> Called:
        """The call that a request makes."""
        raise NotImplementedError

    def answer_call(self, call: Called, request: Request) -> Answer:
        """What the cloud says to it; called without the lock."""
        raise NotImplementedError

    def refusal(self, call: Called | None, request: Request, error: Exception) -> Answer:
        """An error as the service puts it."""
        raise NotImplementedError

    def gap(self, error: Exception) -> Exception:
        """What a caller is told of a defect."""
        raise NotImplementedError

    def code(self, answer: Answer) -> str:
        """The code of an answer that is an error."""
        raise NotImplementedError

    def answer(self, request: Request) -> Answer:
        call = None
        try:
            call = self.identify(request)
            self.calls.append(call)
            self.watching(call)
            sleep(self.latency)
            answer = self.answer_call(call, request)
        except self.refused as error:
            if call:
                call.error = str(getattr(error, "code", ""))
            return self.refusal(call, request, error)
        except Exception as error:
            self.defects.append(error)
            return self.refusal(call, request, self.gap(error))
        if answer.status >= 400:
            call.error = self.code(answer)
        return answer
