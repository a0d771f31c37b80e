"""What IAM and STS do that moto does not: profiles that take a while, denials that can be read."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from unicodedata import category

from tests.simcloud.aws import backends, codec, policy
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.launch import Profiles
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.wire import Answer, Request

_TAG = re.compile(r"Tags\.member\.(?P<number>\d+)\.(?P<part>Key|Value)")


class IAM:
    """Called with the lock held."""

    def __init__(self, profiles: Profiles, timing: Timing) -> None:
        self._profiles = profiles
        self._timing = timing

    def answer(self, call: Call, request: Request) -> Answer:
        if call.operation == "SimulatePrincipalPolicy":
            return _simulated(request)
        if call.operation == "RemoveRoleFromInstanceProfile":
            _check_in_profile(request.form["InstanceProfileName"], request.form["RoleName"])
        _check_tags(request.form)
        answer = backends.call(call.service, request)
        if call.operation == "AddRoleToInstanceProfile" and answer.status == 200:
            name = request.form["InstanceProfileName"]
            self._profiles.made(name, self._timing.profile_ready)
        return answer


def _simulated(request: Request) -> Answer:
    """What policies of a role say, without conditions that a real request would meet.

    IAM's own simulation is of the same policies, and resources in it need not exist.
    """
    given = codec.parameters("iam", "SimulatePrincipalPolicy", request)
    known = backends.iam().roles.values()
    role = next((each for each in known if each.arn == given["PolicySourceArn"]), None)
    if role is None:
        message = f"Entity {given['PolicySourceArn']} not found"
        raise AWSError("NoSuchEntity", message, 404)
    policies = [json.loads(text) for text in role.policies.values()]
    results = []
    for action in given["ActionNames"]:
        for resource in given.get("ResourceArns", ["*"]):
            may = policy.allowed(policies, action, resource, {})
            asked = [] if may else sorted(policy.keys_of(policies, action, resource))
            results.append(
                {
                    "EvalActionName": action,
                    "EvalResourceName": resource,
                    "EvalDecision": "allowed" if may else "implicitDeny",
                    "MissingContextValues": asked,
                }
            )
    content = {"EvaluationResults": results, "IsTruncated": False}
    return codec.result("iam", "SimulatePrincipalPolicy", content)


def _check_in_profile(profile: str, role: str) -> None:
    """moto does not expect that it is not."""
    for known in backends.iam().instance_profiles.values():
        if known.name == profile and role not in [each.name for each in known.roles]:
            message = f"The role with name {role} is not in the instance profile {profile}."
            raise AWSError("NoSuchEntity", message, 404)


def _check_tags(given: Mapping[str, str]) -> None:
    """moto checks keys only, and of profiles not even these."""
    tags = [(found, value) for name, value in given.items() if (found := _TAG.fullmatch(name))]
    for found, text in tags:
        if not all(char in "_.:/=+-@" or category(char)[0] in "LNZ" for char in text):
            raise AWSError(
                "ValidationError",
                f"1 validation error detected: Value '{text}' at "
                f"'tags.{found['number']}.member.{found['part'].lower()}' failed to satisfy "
                r"constraint: Member must satisfy regular expression pattern: "
                r"[\p{L}\p{Z}\p{N}_.:/=+\-@]*",
            )
    keys = [text.lower() for found, text in tags if found["part"] == "Key"]
    if len(set(keys)) < len(keys):
        message = "Duplicate tag keys found. Please note that Tag keys are case insensitive."
        raise AWSError("InvalidInput", message)
    if any(key.startswith("aws:") for key in keys):
        raise AWSError("InvalidInput", "aws: prefixed tag key names are not allowed.")


def answer_sts(call: Call, request: Request) -> Answer:
    if call.operation != "DecodeAuthorizationMessage":
        return backends.call(call.service, request)
    given = codec.parameters("sts", call.operation, request)
    try:
        padded = given["EncodedMessage"] + "=="
        decoded = zlib.decompress(base64.urlsafe_b64decode(padded)).decode()
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
    data = zlib.compress(json.dumps(message).encode())
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
