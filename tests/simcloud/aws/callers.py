"""Who holds an access key: a user, or a role that a machine plays; and the policies of that one.

Making users and credentials belongs here too. What a policy means does not, see `policy`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from tests.simcloud.aws import backends
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.wire import Request

EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass(frozen=True)
class Caller:
    """The holder of a key."""

    arn: str
    secret: str
    policies: list[dict[str, Any]]
    attributes: Mapping[str, str] = field(default_factory=dict)  # for conditions and variables


@dataclass(frozen=True)
class Credentials:
    """Of a role, for a while."""

    key_id: str
    secret: str
    token: str
    expiration: datetime


def make_user(name: str, policy: Mapping[str, Any]) -> tuple[str, str]:
    """A user with this policy and no other: its key id and secret."""
    iam = backends.iam()
    iam.create_user("us-east-1", name)
    iam.put_user_policy(name, "given", json.dumps(policy))
    key = iam.create_access_key(name)
    return key.access_key_id, key.secret_access_key


def make_credentials(role: str, session: str, region: str, seconds: float) -> Credentials:
    """What a machine gets to play its role; moto does not count fractions of seconds."""
    arn = backends.iam().get_role(role).arn
    made = backends.sts().assume_role(region, session, arn, None, seconds, None)
    return Credentials(
        made.access_key_id, made.secret_access_key, made.session_token, _expiration(made)
    )


def expire_all() -> None:
    """Have the credentials of all machines run out."""
    for role in backends.sts().assumed_roles:
        role.expiration = datetime.now(timezone.utc)


def is_good(credentials: Credentials, until: datetime) -> bool:
    """Whether they are good until then."""
    role = backends.sts().get_assumed_role_from_access_key(credentials.key_id)
    return role is not None and _expiration(role) >= until


def _expiration(role: Any) -> datetime:
    found: datetime = role.expiration
    return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found


def find(call: Call, request: Request) -> Caller:
    """The holder of the key that the request names."""
    token = request.headers.get("x-amz-security-token")
    token = token or request.parameters.get("X-Amz-Security-Token")
    user = backends.iam().get_user_from_access_key_id(call.key_id)
    if user is not None and token is None:
        secret = next(
            k.secret_access_key for k in user.access_keys if k.access_key_id == call.key_id
        )
        policies = [json.loads(text) for text in user.policies.values()]
        return Caller(user.arn, secret, policies, {"aws:username": user.name})
    role = backends.sts().get_assumed_role_from_access_key(call.key_id)
    if role is None or token is None:
        raise _unknown(call.service)
    if token != role.session_token:
        raise AWSError("InvalidToken", "The provided token is malformed or otherwise invalid.")
    if _expiration(role) <= datetime.now(timezone.utc):
        code = "RequestExpired" if call.service == "ec2" else "ExpiredToken"
        status = 403 if call.service in ("autoscaling", "iam", "sts") else 400
        raise AWSError(code, "The provided token has expired.", status)
    return Caller(
        role.arn, role.secret_access_key, _policies_of_role(role, call), _attributes(role)
    )


def _policies_of_role(role: Any, call: Call) -> list[dict[str, Any]]:
    known = backends.iam().roles.values()
    found = next((each for each in known if each.arn == role.role_arn), None)
    if found is None:
        raise _unknown(call.service)
    return [json.loads(text) for text in found.policies.values()]


def _attributes(role: Any) -> dict[str, str]:
    session = role.session_name
    attributes = {"aws:userid": role.user_id}
    if session.startswith("i-"):
        region = role.region_name
        attributes["ec2:sourceinstancearn"] = (
            f"arn:aws:ec2:{region}:{backends.ACCOUNT}:instance/{session}"
        )
    return attributes


def _unknown(service: str) -> AWSError:
    if service == "ec2":
        return AWSError(
            "AuthFailure", "AWS was not able to validate the provided access credentials", 401
        )
    if service == "s3":
        message = "The AWS Access Key Id you provided does not exist in our records."
        return AWSError("InvalidAccessKeyId", message, 403)
    message = "The security token included in the request is invalid."
    return AWSError("InvalidClientTokenId", message, 403)
