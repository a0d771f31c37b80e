"""What AWS says becomes an error that says what to do."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from sojourn.clouds.aws.errors import translated
from sojourn.core.errors import AuthError, InvalidInput, SojournError

_DENIED = (
    "You must use a valid fully-formed launch template. You are not authorized to perform this "
    "operation. Encoded authorization failure message: abc-DEF_1"
)


def _ours(code: str, message: str, decoded: str = "") -> SojournError:
    answer = {"Error": {"Code": code, "Message": message}}
    with pytest.raises(SojournError) as caught, translated("it", lambda _: decoded):
        raise ClientError(answer, "Operation")  # type: ignore[arg-type, unused-ignore]
    return caught.value


def test_a_template_that_one_may_not_launch_is_a_matter_of_permissions() -> None:
    error = _ours("ValidationError", _DENIED, '{"action": "ec2:RunInstances"}')
    assert isinstance(error, AuthError)
    assert error.hint.startswith("Allow ec2:RunInstances; see docs")
    assert "abc-DEF_1" not in error.message


def test_other_validation_errors_are_about_the_input() -> None:
    assert isinstance(_ours("ValidationError", "Group name too long"), InvalidInput)


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("InvalidToken", "The provided token is malformed", "aws sso login"),
        ("RequestTimeTooSkewed", "The difference is too large.", "Correct the clock"),
        (
            "SignatureDoesNotMatch",
            "Signature expired: 2 is now earlier than 3",
            "Correct the clock",
        ),
        ("SignatureDoesNotMatch", "The signature does not match", "aws sso login"),
        ("OptInRequired", "You are not subscribed to this service.", "Enable the region"),
        ("AuthFailure", "AWS was not able to validate the credentials", "Enable the region"),
        ("AuthFailure", "AWS was not able to validate the credentials", "aws sso login"),
    ],
)
def test_a_login_that_is_refused_is_told_with_what_helps(
    code: str, message: str, hint: str
) -> None:
    error = _ours(code, message)
    assert isinstance(error, AuthError)
    assert hint in error.hint
