"""Errors in the forms that the services have, and what requests to S3 name.

What is answered does not belong here.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from urllib.parse import unquote
from xml.sax.saxutils import escape

from tests.simcloud.common.wire import Answer, Request


def bucket_and_key(request: Request) -> tuple[str, str]:
    """What the path of a request to S3 names."""
    bucket, _, key = unquote(request.path).lstrip("/").partition("/")
    return bucket, key


class AWSError(Exception):
    """A refusal, with a code that clients know."""

    def __init__(self, code: str, message: str = "", status: int = 400, **more: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.more = more  # further elements of an error of S3


def refusal(service: str, request: Request, error: AWSError) -> Answer:
    """The error as this service puts it."""
    identity = str(uuid.uuid4())
    headers = {"x-amzn-RequestId": identity, "x-amz-request-id": identity}
    if region := error.more.get("Region"):
        headers["x-amz-bucket-region"] = region
    if request.method == "HEAD":
        return Answer(error.status, b"", headers)
    said = {"Code": error.code, "Message": error.message}
    if service == "s3":
        inner = _elements({**said, **error.more, "RequestId": identity})
        text = f"<Error>{inner}</Error>"
    elif service == "ec2":
        inner = f"<Errors><Error>{_elements(said)}</Error></Errors>"
        text = f"<Response>{inner}<RequestID>{identity}</RequestID></Response>"
    else:
        blame = {"Type": "Sender" if error.status < 500 else "Receiver"}
        inner = f"<Error>{_elements({**blame, **said})}</Error>"
        text = f"<ErrorResponse>{inner}<RequestId>{identity}</RequestId></ErrorResponse>"
    headers["Content-Type"] = "text/xml"
    return Answer(error.status, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode(), headers)


def _elements(values: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items())
