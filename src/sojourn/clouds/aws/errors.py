"""What AWS calls its errors, and what we call them: boto's exceptions stop here."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws.credentials import Used
from sojourn.clouds.vm.errors import absent, in_use, later, no_capacity, taken, unknown, unreachable
from sojourn.core.errors import AuthError, InvalidInput, QuotaError, SojournError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ABSENT", "code_of", "ignoring", "translated"]

# What "it is not there" is called, by service.
ABSENT = frozenset(
    {
        "404",
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidGroup.NotFound",
        "InvalidKeyPair.NotFound",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidPlacementGroup.Unknown",
        "InvalidSnapshot.NotFound",
        "NoSuchBucket",
        "NoSuchEntity",
        "NoSuchKey",
        "NoSuchUpload",
        "NotFound",
    }
)
_LOGIN = frozenset(
    {
        "400",  # of a HEAD, whose answer has no text: the token has expired
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "OptInRequired",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_DENIED = frozenset({"403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_LATER = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "OperationAborted",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "ResourceContention",
        "ResourceInUse",
        "ScalingActivityInProgress",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "Unavailable",
    }
)
_QUOTA = frozenset(
    {
        "InstanceLimitExceeded",
        "KeyPairLimitExceeded",
        "LimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "PlacementGroupLimitExceeded",
        "SecurityGroupLimitExceeded",
        "TooManyBuckets",
        "VcpuLimitExceeded",
    }
)
_TAKEN = frozenset({"BucketAlreadyExists", "InvalidAMIName.Duplicate", "InvalidGroup.Duplicate"})
_IN_USE = frozenset(
    {
        "BucketNotEmpty",
        "DeleteConflict",
        "DependencyViolation",
        "InvalidPlacementGroup.InUse",
        "InvalidSnapshot.InUse",
    }
)
_NO_CAPACITY = frozenset({"InsufficientInstanceCapacity", "SpotMaxPriceTooLow"})

_LOGIN_HINT = "Run `aws sso login`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
_REGION_HINT = "Enable the region in your account, or choose another."
# By code, where another login would not help.
_HINTS = {
    "OptInRequired": _REGION_HINT,
    "RequestTimeTooSkewed": "Correct the clock of this computer.",
}
# Auto Scaling says so of a template that one may not launch, and calls it a ValidationError.
_REFUSED = re.compile(r"not authorized to|Encoded authorization failure")
_LATE = re.compile(r"Signature expired|Signature not yet current")
_ABSENT_GROUP = re.compile(r"^AutoScalingGroup name not found")
_ENCODED = re.compile(r"Encoded authorization failure message: (?P<text>[\w-]+)")
_ACTION = re.compile(r"(perform: |\"action\": ?\")(?P<action>[\w-]+:\w+)")


def code_of(error: BaseException) -> str:
    """AWS's own name of an error, or of what caused it; empty if it is none of AWS's."""
    response: Any = getattr(error.__cause__ or error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


@contextmanager
def ignoring(*codes: str) -> Iterator[None]:
    """Go on if AWS answers with one of these."""
    try:
        yield
    except Exception as error:
        if code_of(error) not in codes:
            raise


@contextmanager
def translated(
    what: str,
    decode: Callable[[str], str] | None = None,
    used: Callable[[], Used] | None = None,
) -> Iterator[None]:
    """Let boto's exceptions out as ours.

    `decode` reads what AWS encodes in a refusal; `used` tells which credentials AWS was shown.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _ours(error, what, decode, used) from error
    except BotoCoreError as error:
        raise _unreachable(error, what) from error


def _ours(
    error: Any,
    what: str,
    decode: Callable[[str], str] | None,
    used: Callable[[], Used] | None,
) -> SojournError:
    code = code_of(error)
    told = f"{error.response['Error'].get('Message', code)} ({code})"
    message = f"{what}: {told}"
    if code in ABSENT or (code == "ValidationError" and _ABSENT_GROUP.search(told)):
        return absent(message)
    if code in _DENIED or (code == "ValidationError" and _REFUSED.search(message)):
        return _denied(message, decode)
    if code in _LOGIN:
        return _rejected("RequestTimeTooSkewed" if _LATE.search(message) else code, told, used)
    if code in _LATER or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 503:
        return later(message)
    if code in _QUOTA:
        return QuotaError(
            message, hint="Request an increase in Service Quotas, or delete unused resources."
        )
    for codes, made in ((_NO_CAPACITY, no_capacity), (_TAKEN, taken), (_IN_USE, in_use)):
        if code in codes:
            return made(message)
    if code.startswith(("Invalid", "Malformed", "Validation", "MissingParameter")):
        return InvalidInput(what, told)
    return unknown(message)


def _rejected(code: str, told: str, used: Callable[[], Used] | None) -> AuthError:
    """Whatever was asked for: it is the login that AWS does not accept."""
    if code in _HINTS:
        return AuthError(f"AWS rejected the request: {told}", hint=_HINTS[code])
    shown = used() if used else Used("your login", _LOGIN_HINT)
    hint = f"{shown.remedy} Run `sojourn doctor` to see your identity."
    if code == "AuthFailure":  # EC2 says the same of a region that the account has not enabled
        hint += f" If the region is not enabled: {_REGION_HINT}"
    return AuthError(f"AWS rejected the credentials from {shown.source}: {told}", hint=hint)


def _denied(message: str, decode: Callable[[str], str] | None) -> AuthError:
    encoded = _ENCODED.search(message)
    if encoded and decode:
        message = message.replace(encoded["text"], decode(encoded["text"]))
    action = _ACTION.search(message)
    allow = f"Allow {action['action']}" if action else "Log in with valid keys, or allow the action"
    return AuthError(message, hint=f"{allow}; see docs/aws.md for the full policy.")


def _unreachable(error: Any, what: str) -> SojournError:
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return AuthError(
            f"AWS: {error}", hint=f"{_LOGIN_HINT} Run `sojourn doctor` to see your identity."
        )
    if name in ("ProfileNotFound", "NoRegionError", "InvalidRegionError"):
        return AuthError(f"{what}: {error}", hint="Check ~/.aws/config and AWS_PROFILE.")
    if "SSO" in name or "Token" in name:
        return AuthError(f"{what}: {error}", hint="Run `aws sso login`.")
    return unreachable(what, error)
