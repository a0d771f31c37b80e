"""What Azure's errors are called here, and what to do about them."""

from __future__ import annotations

import pytest

from sojourn.clouds.az.errors import code_of, translated
from sojourn.clouds.vm.rest import Refused, Unreachable
from sojourn.core.errors import (
    AuthError,
    CapacityError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)

_QUOTA = (
    "Operation could not be completed as it results in exceeding approved LowPriorityCores quota. "
    "Additional details - Deployment Model: Resource Manager, Location: eastus, Current Limit: 3, "
    "Current Usage: 0"
)


def _raised(status: int, code: str, message: str = "") -> SojournError:
    content = {"error": {"code": code, "message": message}}
    with pytest.raises(SojournError) as caught, translated("thing"):
        raise Refused(status, {}, str(content), content)
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "message", "kind", "told"),
    [
        (404, "ResourceNotFound", "x", NotFound, "sojourn list"),
        (404, "SubscriptionNotFound", "x", AuthError, "AZURE_SUBSCRIPTION_ID"),
        (401, "InvalidAuthenticationToken", "x", AuthError, "az login"),
        (
            403,
            "AuthorizationFailed",
            "perform action 'A/b/read' over",
            AuthError,
            "Allow A/b/read;",
        ),
        (
            403,
            "LinkedAuthorizationFailed",
            "has permission to perform action 'A/write' on scope 'x'; however, it does not have "
            "permission to perform action(s) 'A/join/action' on the linked scope(s) 'y'",
            AuthError,
            "Allow A/join/action;",
        ),
        (409, "OperationNotAllowed", _QUOTA, QuotaError, "'LowPriorityCores' of 3 is too small"),
        (409, "SkuNotAvailable", "x", CapacityError, "another machine or region"),
        (409, "AllocationFailed", "x", CapacityError, "Try again later"),
        (
            409,
            "OperationNotAllowed",
            "the max price '0.1' USD is lower than the current price '0.3' USD",
            CapacityError,
            "The spot price is 0.3 USD per hour, above the maximum of 0.1",
        ),
        (
            409,
            "MissingSubscriptionRegistration",
            "not registered to use namespace 'Microsoft.Compute'. See",
            AuthError,
            "az provider register --namespace Microsoft.Compute",
        ),
        (409, "ScopeLocked", "are locked: '/a/b'. Please", Conflict, "Remove the lock of /a/b"),
        (409, "StorageAccountAlreadyTaken", "x", Conflict, "choose another name"),
        (409, "AnotherOperationInProgress", "x", Transient, "Try again"),
        (429, "TooManyRequests", "x", Transient, "Try again"),
        (503, "ServerBusy", "x", Transient, "Try again"),
        (400, "InvalidParameter", "x", InvalidInput, "thing: x"),
        (409, "SomethingElse", "x", SojournError, "sojourn doctor"),
    ],
)
def test_kinds(status: int, code: str, message: str, kind: type[Exception], told: str) -> None:
    error = _raised(status, code, message)
    assert type(error) is kind
    assert told in str(error)
    assert code_of(error) == code


def test_an_answer_that_is_no_json() -> None:
    with pytest.raises(Transient, match="Bad gateway"), translated("thing"):
        raise Refused(502, {}, "<html>Bad gateway</html>", None)


def test_no_answer() -> None:
    with pytest.raises(Transient, match="thing: cut"), translated("thing"):
        raise Unreachable("cut")
