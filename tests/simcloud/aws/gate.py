"""What every call goes through: who is it, may it, does it fail, what is the answer.

How the services answer does not belong here, nor how bytes come and go, see `server`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from tests.simcloud.aws import callers, calls, policy, rights, signing
from tests.simcloud.aws.callers import Caller
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.faults import Fault, Faults
from tests.simcloud.aws.groups import Groups
from tests.simcloud.aws.rights import Need
from tests.simcloud.aws.strict_iam import encoded
from tests.simcloud.aws.wire import Answer, AWSError, Request, refusal

Service = Callable[[Call, Request], Answer]


class Gate:
    """Answers requests, one at a time but for the time that they are told to take."""

    def __init__(
        self, services: Mapping[str, Service], groups: Groups, changed: threading.Condition
    ) -> None:
        self._services = services
        self._groups = groups
        self._changed = changed
        self.faults = Faults()
        self.latency = 0.0
        self.watching: Callable[[Call], object] = lambda _: None
        self.calls: list[Call] = []
        self.defects: list[BaseException] = []  # what the simulation could not do

    def answer(self, request: Request) -> Answer:
        call = None
        try:
            call = calls.identify(request)
            self.calls.append(call)
            self.watching(call)
            time.sleep(self.latency)
            answer = self._answer(call, request)
        except AWSError as error:
            if call:
                call.error = error.code
            return refusal(call.service if call else "s3", request, error)
        except Exception as error:
            self.defects.append(error)
            gap = AWSError("NotImplemented", f"The simulation cannot do this: {error!r}", 400)
            return refusal(call.service if call else "s3", request, gap)
        if answer.status >= 400:
            call.error = _code(answer)
        return answer

    def _answer(self, call: Call, request: Request) -> Answer:
        with self._changed:
            caller = callers.find(call, request)
            call.who = caller.arn
        signing.verify(request, call.service, caller.secret)
        with self._changed:
            fault = self.faults.strike(call)
            if fault and not fault.after:
                raise fault.raised(call)
            self._authorize(call, caller, request)
            answer = self._services[call.service](call, request)
            if call.service == "autoscaling":
                self._changed.notify_all()  # the scaler may have something to do
            return self._afterwards(call, caller, request, answer, fault)

    def _afterwards(
        self, call: Call, caller: Caller, request: Request, answer: Answer, fault: Fault | None
    ) -> Answer:
        if fault:
            raise fault.raised(call)
        if call.service == "s3" and answer.status == 404 and request.bucket_and_key[1]:
            # Who may not list must not learn what is not there
            bucket = f"arn:aws:s3:::{request.bucket_and_key[0]}"
            if not _may(caller, call, Need("s3:ListBucket", bucket)):
                raise _denied(call, caller, Need("s3:ListBucket", bucket))
        return answer

    def _authorize(self, call: Call, caller: Caller, request: Request) -> None:
        for need in rights.needed(call, request, self._groups):
            if not _may(caller, call, need):
                raise _denied(call, caller, need)


def _may(caller: Caller, call: Call, need: Need) -> bool:
    context = {
        **need.context,
        "aws:requestedregion": [call.region],
        "aws:principalarn": [caller.arn],
        **{key: [value] for key, value in caller.attributes.items()},
    }
    return policy.allowed(caller.policies, need.action, need.resource, context)


def _denied(call: Call, caller: Caller, need: Need) -> AWSError:
    text = (
        f"User: {caller.arn} is not authorized to perform: {need.action} on resource: "
        f"{need.resource} because no identity-based policy allows the {need.action} action"
    )
    message = encoded(need.action, need.resource, caller.arn)
    if call.service == "autoscaling" and not need.action.startswith("autoscaling:"):
        return AWSError(  # it tries to launch with the template, and hands on what EC2 says
            "ValidationError",
            f"You must use a valid fully-formed launch template. You are not authorized to "
            f"perform this operation. Encoded authorization failure message: {message}",
        )
    if call.service != "ec2":
        return AWSError("AccessDenied", text, 403)
    return AWSError(
        "UnauthorizedOperation",
        f"You are not authorized to perform this operation. {text}. "
        f"Encoded authorization failure message: {message}",
        403,
    )


def _code(answer: Answer) -> str:
    return answer.body.decode(errors="replace").partition("<Code>")[2].partition("<")[0]
