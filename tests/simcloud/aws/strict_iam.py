"""What IAM and STS do that moto does not: profiles that take a while, denials that can be read."""

from __future__ import annotations

import base64
import json
import zlib

from tests.simcloud.aws import backends, codec
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.launch import Profiles
from tests.simcloud.aws.wire import Answer, AWSError, Request


class IAM:
    """Called with the lock held."""

    def __init__(self, profiles: Profiles, timing: Timing) -> None:
        self._profiles = profiles
        self._timing = timing

    def answer(self, call: Call, request: Request) -> Answer:
        if call.operation == "RemoveRoleFromInstanceProfile":
            _check_in_profile(request.form["InstanceProfileName"], request.form["RoleName"])
        answer = backends.call(call.service, request)
        if call.operation == "AddRoleToInstanceProfile" and answer.status == 200:
            name = request.form["InstanceProfileName"]
            self._profiles.made(name, self._timing.profile_ready)
        return answer


def _check_in_profile(profile: str, role: str) -> None:
    """moto does not expect that it is not."""
    for known in backends.iam().instance_profiles.values():
        if known.name == profile and role not in [each.name for each in known.roles]:
            message = f"The role with name {role} is not in the instance profile {profile}."
            raise AWSError("NoSuchEntity", message, 404)


def answer_sts(call: Call, request: Request) -> Answer:
    if call.operation != "DecodeAuthorizationMessage":
        return backends.call(call.service, request)
    given = codec.parameters("sts", call.operation, request)
    try:
        decoded = zlib.decompress(base64.urlsafe_b64decode(given["EncodedMessage"])).decode()
    except (ValueError, zlib.error):
        code = "InvalidAuthorizationMessageException"
        raise AWSError(code, "Message is not valid") from None
    return codec.result("sts", call.operation, {"DecodedMessage": decoded})


def encoded(action: str, resource: str, who: str) -> str:
    """The message of a denial, which only who may decode it can read."""
    message = {
        "allowed": False,
        "explicitDeny": False,
        "matchedStatements": {"items": []},
        "failures": {"items": []},
        "context": {
            "principal": {"arn": who},
            "action": action,
            "resource": resource,
            "conditions": {"items": []},
        },
    }
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(message).encode())).decode()
