"""Calls of a forge's API, with patience for what may pass.

By the standard library alone, for machines. Which way they go is in `network`.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.core.errors import AuthError, Conflict, IntegrityError, NotFound, Transient
from sojourn.forges import network

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message

    from sojourn.core.context import Context

__all__ = ["TRIES", "Answer", "Http", "checksum", "download", "made_once", "published_sum"]

_WITHIN = 30.0  # seconds for an answer
TRIES = 6
_LONGEST_PAUSE = 60.0
_LATER = frozenset((408, 429, 500, 502, 503, 504))
_PIECE = 1 << 20
_LARGEST = 64 << 20  # bytes of an answer
_LONGEST_SUM = 1 << 10
_AGENT = {"User-Agent": "sojourn"}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Answer:
    """What a call returned. `json` is None if it had no body, or another one."""

    status: int
    headers: Message
    data: bytes = field(repr=False)
    json: Any = field(repr=False)

    @property
    def message(self) -> str:
        """What the forge says of an error."""
        found = self.json if isinstance(self.json, dict) else {}
        said = found.get("message") or found.get("error") or ""
        return str(said.get("message", said) if isinstance(said, dict) else said)[:500]


class Http:
    """A forge's API. `base`: what all paths begin with."""

    def __init__(self, base: str, headers: Mapping[str, str]) -> None:
        self.base = base
        self._headers = {**_AGENT, **headers}

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.base).netloc

    def call(
        self,
        ctx: Context,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        allow: tuple[int, ...] = (),
        tries: int = TRIES,
    ) -> Answer:
        """Raises AuthError, NotFound, Conflict or Transient, unless the status is in `allow`.

        What may pass is tried again; so a call must be one that can be repeated, or have one try.
        """
        url = self.base + path
        if query:
            url = f"{url}?{urllib.parse.urlencode(query)}"
        for attempt in range(1, tries + 1):
            ctx.check()
            try:
                answer = self._once(method, url, body)
                why = answer.message or f"HTTP {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                answer, why = None, _reason(error)
                if _is_untrusted(error):
                    break
            if answer is not None and not _may_pass(answer):
                return self._judged(answer, allow)
            if attempt < tries:
                ctx.sleep(_pause(attempt, answer))
        raise Transient(f"Could not reach {self.host}: {why}")

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, dict(self._headers), method=method)  # noqa: S310 -- the user's own forge
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with network.opened(request, _WITHIN) as answer:
                return _answer(answer.status, answer.headers, answer.read(_LARGEST))
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error.code, error.headers, error.read(_LARGEST))

    def _judged(self, answer: Answer, allow: tuple[int, ...]) -> Answer:
        if answer.status < 300 or answer.status in allow:
            return answer
        said = answer.message or f"HTTP {answer.status}"
        if answer.status == 401:
            raise AuthError(
                f"{self.host} rejected the token: {said}", hint="Check that it has not expired."
            )
        if answer.status == 403:
            raise AuthError(f"{self.host} denied access: {said}")
        if answer.status in (404, 410):
            raise NotFound(f"{self.host}: {said}")
        raise Conflict(f"{self.host} refused: {said}")


def _may_pass(answer: Answer) -> bool:
    """Rate limits come as 403, too."""
    if answer.status in _LATER:
        return True
    spent = answer.headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in answer.headers
    return answer.status == 403 and spent


def _pause(attempt: int, answer: Answer | None) -> float:
    """As long as the forge asks for, or longer and longer; not all callers at the same moment."""
    wanted = _wanted(answer.headers) if answer else None
    if wanted is not None:
        return min(wanted, _LONGEST_PAUSE)
    return min(0.25 * 2.0**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311


def _wanted(headers: Message) -> float | None:
    after, reset = headers.get("Retry-After", ""), headers.get("X-RateLimit-Reset", "")
    if after.isdecimal():
        return float(after)
    return max(1.0, float(reset) - time.time()) if reset.isdecimal() else None


def _answer(status: int, headers: Message, data: bytes) -> Answer:
    try:
        return Answer(status, headers, data, json.loads(data) if data else None)
    except ValueError:
        return Answer(status, headers, data, None)


def _is_untrusted(error: Exception) -> bool:
    """No other try would find another certificate."""
    return isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError)


def _reason(error: Exception) -> str:
    why = getattr(error, "reason", error)
    if isinstance(why, ssl.SSLCertVerificationError):
        private = "set ca_file (--ca-file) or SSL_CERT_FILE if its CA is a private one"
        return f"{why.verify_message}; {private}"
    return str(why) or type(error).__name__


def made_once(ctx: Context, make: Callable[[], _T], remove: Callable[[], None]) -> _T:
    """Make something whose secret is told only once, by a call that has one try.

    If the answer was lost, what may have been made is of no use: it goes before the next try. So
    there is never more than one.
    """
    for attempt in range(1, TRIES):
        try:
            return make()
        except Transient:
            ctx.sleep(_pause(attempt, None))
            remove()
    return make()


def checksum(ctx: Context, url: str) -> str:
    """The SHA-256 of what is there now."""
    return _patiently(ctx, url, lambda: _fetched(ctx, url, Path(os.devnull)))


def download(ctx: Context, url: str, file: Path, sha256: str) -> None:
    """Fetch a file that must be the one that it was said to be."""
    found = _patiently(ctx, url, lambda: _fetched(ctx, url, file))
    if found != sha256:
        file.unlink()
        raise IntegrityError(f"{url} has SHA-256 {found}, expected {sha256}")


def published_sum(ctx: Context, url: str) -> str:
    """The SHA-256 that a publisher has beside a file, as sha256sum writes it."""
    found = (_patiently(ctx, url, lambda: _read(url)).split() or [""])[0].lower()
    if not re.fullmatch("[0-9a-f]{64}", found):
        raise IntegrityError(f"{url} is not a SHA-256 checksum")
    return found


def _patiently(ctx: Context, url: str, fetch: Callable[[], str]) -> str:
    attempt = 1
    while True:
        ctx.check()
        try:
            return fetch()
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in (404, 410):
                raise NotFound(f"Could not download {url}: {_reason(error)}") from error
            if attempt == TRIES:
                raise Transient(f"Could not download {url}: {_reason(error)}") from error
        ctx.sleep(_pause(attempt, None))
        attempt += 1


def _read(url: str) -> str:
    request = urllib.request.Request(url, headers=_AGENT)  # noqa: S310 -- of the user's own choice
    with network.opened(request, _WITHIN) as answer:
        return str(answer.read(_LONGEST_SUM).decode("ascii", "replace"))


def _fetched(ctx: Context, url: str, file: Path) -> str:
    digest = hashlib.sha256()
    request = urllib.request.Request(url, headers=_AGENT)  # noqa: S310 -- checked by its hash
    with network.opened(request, _WITHIN) as answer, file.open("wb") as out:
        while piece := answer.read(_PIECE):
            ctx.check()
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()
