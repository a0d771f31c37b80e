"""Wrong keys are told as such, at whichever call AWS finds out: which they are, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import sojourn
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.credentials import used_by
from sojourn.core.errors import AuthError
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS

_TASK = Task("#!/bin/sh\n", cloud="aws")
_VARIABLES = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_FIRST: dict[str, Callable[[], object]] = {
    "check": lambda: sojourn.create(_TASK),
    "profile": lambda: sojourn.create(
        Task("#!/bin/sh\n", cloud="aws", permission_set="arn:aws:iam::1:instance-profile/a")
    ),
    "store": lambda: Account().call("b", "s3", "us-west-1", "list_objects_v2", Bucket="b"),
    "group": lambda: list(
        Account().pages("g", "autoscaling", "us-west-1", "describe_auto_scaling_groups")
    ),
    "who": lambda: Account().call("identity", "sts", "us-west-1", "get_caller_identity"),
}


@pytest.mark.parametrize("first", list(_FIRST))
@pytest.mark.parametrize("wrong", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_keys_are_told_at_whichever_call_comes_first(
    laptop: SimAWS, monkeypatch: pytest.MonkeyPatch, wrong: str, first: str
) -> None:
    monkeypatch.setenv(wrong, "A" * len(os.environ[wrong]))
    with pytest.raises(AuthError) as caught:
        _FIRST[first]()
    assert caught.value.message.startswith(f"AWS rejected the credentials from {_VARIABLES}: ")
    assert caught.value.hint.startswith(f"Set {_VARIABLES}")
    assert laptop.inventory() == []


@pytest.mark.parametrize(
    "code",
    [
        *("AuthFailure", "ExpiredToken", "InvalidClientTokenId"),
        *("SignatureDoesNotMatch", "UnrecognizedClientException"),
    ],
)
def test_it_is_not_the_machine_that_is_wrong(laptop: SimAWS, code: str) -> None:
    laptop.fail("*", code=code, status=400, times=999)
    with pytest.raises(AuthError) as caught:
        sojourn.create(_TASK)
    assert caught.value.message.startswith("AWS rejected the credentials from ")
    assert f"({code})" in caught.value.message


def test_the_profile_that_was_used_is_named(
    laptop: SimAWS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    keys = "aws_access_key_id = AKIAWRONG\naws_secret_access_key = wrong\n"
    file = tmp_path / "keys"
    file.write_text(f"[team]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "team")
    with pytest.raises(AuthError) as caught:
        sojourn.create(_TASK)
    assert f"the credentials from profile 'team' in {file}: " in caught.value.message
    assert "`aws configure --profile team`" in caught.value.hint
    assert "wrong" not in str(caught.value)


class _Session:
    """What boto says of a session, of the kinds that need somebody to log in."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.profile_name = "team"

    def get_credentials(self) -> object:
        return self


@pytest.mark.parametrize(
    ("method", "source", "remedy"),
    [
        ("sso", "the SSO login of profile 'team'", "Run `aws sso login --profile team`."),
        ("config-file", "profile 'team' in ~/.aws/config", "`aws configure --profile team`"),
        ("assume-role", "profile 'team' (assume-role)", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_other_ways_to_log_in(
    method: str, source: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    used = used_by(_Session(method))
    assert used.source == source
    assert remedy in used.remedy
