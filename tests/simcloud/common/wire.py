"""Requests and answers as they are on the wire. What is answered does not belong here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

CUT = 0  # the status of an answer that is not given: the connection is cut


@dataclass(frozen=True)
class Request:
    """What a client sent. Names of headers are in lower case."""

    method: str
    path: str  # as it was sent, percent-encoded
    query: str
    headers: Mapping[str, str]
    body: bytes
    environ: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def parameters(self) -> dict[str, str]:
        """The query, decoded; of a parameter that is there more than once, the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        """Parameters that come in the body."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass(frozen=True)
class Answer:
    """What it is told."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
