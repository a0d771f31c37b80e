from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sojourn.clouds.aws.on_machine import signing

_KEYS = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret/+x", "Token": "token=="}
_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class _Clock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> Any:
        return _NOW


@pytest.mark.parametrize(
    ("method", "url", "service", "body"),
    [
        ("GET", "https://b.s3.us-west-1.amazonaws.com/boot/agent-x86_64-312.zip", "s3", b""),
        ("GET", "http://127.0.0.1:5000/b/f/boot/a.zip", "s3", b""),
        ("POST", "https://autoscaling.us-west-1.amazonaws.com/", "autoscaling", b"Action=X&a=b"),
    ],
)
def test_a_signature_is_that_of_boto(
    monkeypatch: pytest.MonkeyPatch, method: str, url: str, service: str, body: bytes
) -> None:
    monkeypatch.setattr(signing, "datetime", _Clock)
    ours = signing.signed(method, url, service, "us-west-1", _KEYS, body)
    headers = {name.lower(): value for name, value in ours.header_items()}
    theirs = AWSRequest(method, url, data=body)
    theirs.headers["x-amz-content-sha256"] = headers["x-amz-content-sha256"]
    signer = SigV4Auth(
        Credentials(_KEYS["AccessKeyId"], _KEYS["SecretAccessKey"], _KEYS["Token"]),
        service,
        "us-west-1",
    )
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: _NOW.replace(tzinfo=None))
    signer.add_auth(theirs)
    assert headers["authorization"] == theirs.headers["Authorization"]
