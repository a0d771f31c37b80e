"""What every call to AWS goes through: who is it, may it, does it fail, what is the answer.

How the services answer does not belong here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tests.simcloud.aws import callers, calls, policy, rights, signing
from tests.simcloud.aws.callers import Caller
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.groups import Groups
from tests.simcloud.aws.rights import Need
from tests.simcloud.aws.strict_iam import encoded
from tests.simcloud.aws.wire import AWSError, bucket_and_key, refusal
from tests.simcloud.common import gate as common
from tests.simcloud.common.faults import Fault
from tests.simcloud.common.wire import Answer, Request

_THROTTLED = {
    "ec2": AWSError("RequestLimitExceeded", "Request limit exceeded.", 503),
    "s3": AWSError("SlowDown", "Please reduce your request rate.", 503),
}
_RATE = AWSError("Throttling", "Rate exceeded", 400)

Service = Callable[[Call, Request], Answer]


class Gate(common.Gate[Call]):
    """With what AWS checks of every call."""

    refused = AWSError

    def __init__(
        self, services: Mapping[str, Service], groups: Groups, changed: threading.Condition
    ) -> None:
        super().__init__(changed)
        self._services = services
        self._groups = groups

    def identify(self, request: Request) -> Call:
        return calls.identify(request)

    def refusal(self, call: Call | None, request: Request, error: Exception) -> Answer:
        assert isinstance(error, AWSError)
        return refusal(call.service if call else "s3", request, error)

    def gap(self, error: Exception) -> AWSError:
        return AWSError("NotImplemented", f"The simulation cannot do this: {error!r}", 400)

    def code(self, answer: Answer) -> str:
        return answer.body.decode(errors="replace").partition("<Code>")[2].partition("<")[0]

    def answer_call(self, call: Call, request: Request) -> Answer:
        with self._changed:
            caller = callers.find(call, request)
            call.who = caller.arn
        signing.verify(request, call.service, caller.secret)
        with self._changed:
            fault = self.faults.strike(call)
            if fault and not fault.after:
                raise _raised(call, fault)
            self._authorize(call, caller, request)
            answer = self._services[call.service](call, request)
            if call.service == "autoscaling":
                self._changed.notify_all()  # the scaler may have something to do
            return self._afterwards(call, caller, request, answer, fault)

    def _afterwards(
        self, call: Call, caller: Caller, request: Request, answer: Answer, fault: Fault | None
    ) -> Answer:
        if fault:
            raise _raised(call, fault)
        name, key = bucket_and_key(request)
        if call.service == "s3" and answer.status == 404 and key:
            # Who may not list must not learn what is not there
            bucket = f"arn:aws:s3:::{name}"
            if not _may(caller, call, Need("s3:ListBucket", bucket)):
                raise _denied(call, caller, Need("s3:ListBucket", bucket))
        return answer

    def _authorize(self, call: Call, caller: Caller, request: Request) -> None:
        for need in rights.needed(call, request, self._groups):
            if not _may(caller, call, need):
                raise _denied(call, caller, need)


def _raised(call: Call, fault: Fault) -> Exception:
    return fault.error or _THROTTLED.get(call.service, _RATE)


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
