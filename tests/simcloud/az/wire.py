"""Requests and answers as they are on the wire, and errors in the forms that the services have.

What is answered does not belong here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

CUT = 0  # the status of an answer that is not given: the connection is cut


@dataclass(frozen=True)
class Request:
    """What a client sent. Names of headers are in lower case."""

    method: str
    host: str
    path: str  # as it was sent, percent-encoded
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def parameters(self) -> dict[str, str]:
        """The query, decoded; of a parameter that is there more than once, the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def segments(self) -> list[str]:
        """The parts of the path, decoded."""
        return [unquote(each) for each in self.path.split("/") if each]

    @property
    def url(self) -> str:
        return f"https://{self.host}{self.path}"


@dataclass(frozen=True)
class Answer:
    """What it is told."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class ArmError(Exception):
    """A refusal of Azure Resource Manager, with a code that clients know."""

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
