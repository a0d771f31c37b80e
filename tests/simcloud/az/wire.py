"""Errors and answers of Azure Resource Manager as they are on the wire.

What is answered does not belong here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from tests.simcloud.common.wire import Answer, Request


class ArmError(Exception):
    """A refusal, with a code that clients know."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        target: str = "",
        details: tuple[Mapping[str, str], ...] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.target = target
        self.details = details
        self.retry_after = retry_after

    def content(self) -> dict[str, Any]:
        """What is inside of `error`, also where an operation tells how it ended."""
        said: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target:
            said["target"] = self.target
        if self.details:
            said["details"] = [dict(each) for each in self.details]
        return said

    def answer(self) -> Answer:
        headers = {"x-ms-failure-cause": "gateway"}
        if self.status == 401:
            headers["WWW-Authenticate"] = f'Bearer error="invalid_token", error="{self.code}"'
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return reply(self.status, {"error": self.content()}, headers)


def reply(status: int, content: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer in JSON, or without a body."""
    said = dict(headers or {})
    if content is None:
        return Answer(status, b"", said)
    said["Content-Type"] = "application/json; charset=utf-8"
    return Answer(status, json.dumps(content).encode(), said)


def host(request: Request) -> str:
    """Which of Azure's names was asked."""
    return request.headers.get("host", "").partition(":")[0].lower()


def segments(path: str) -> list[str]:
    """The parts of a path, decoded."""
    return [unquote(each) for each in path.split("/") if each]
