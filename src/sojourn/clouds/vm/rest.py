"""Calls of a cloud's JSON API: with a token, and with patience for what may pass."""

from __future__ import annotations

import functools
import os
import random
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.core.lazy import lazily

with lazily("httpx"):  # to check a task takes no call, and so no library
    import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

__all__ = ["Answer", "Refused", "Rest", "Unreachable", "may_pass", "read_end", "trusted"]

_CONNECT_WITHIN = 10.0  # seconds
_ANSWER_WITHIN = 60.0
_TRIES = 8
_LONGEST_PAUSE = 20.0
_LATER = frozenset((408, 429, 500, 502, 503, 504))


@dataclass(frozen=True)
class Answer:
    """What a call returned. `json` is None if it had no body."""

    status: int
    headers: Mapping[str, str]
    json: Any = field(repr=False)


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, headers: Mapping[str, str], text: str, json: Any) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status
        self.headers = headers
        self.text = text
        self.json = json


class Unreachable(Exception):
    """No answer at all."""


def trusted() -> ssl.SSLContext:
    """Whose certificates are good. To load them takes longer than most calls."""
    return _loaded(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@functools.lru_cache(maxsize=1)
def _loaded(_file: str, _folder: str) -> ssl.SSLContext:
    return httpx.create_ssl_context()


def may_pass(status: int, _: Any) -> bool:
    """Whether a call that was refused in this way is worth another try."""
    return status in _LATER


class Rest:
    """A client; threads may share it.

    `token` has the bearer token of the moment; it is told to make a new one if that was rejected.
    `passing`: which refusals may pass, by status and JSON.
    """

    def __init__(
        self,
        token: Callable[[bool], str],
        *,
        tries: int = 0,
        agent: str = "sojourn",
        passing: Callable[[int, Any], bool] = may_pass,
    ) -> None:
        self._token = token
        self._tries = tries or _TRIES
        self._passing = passing
        self._client = httpx.Client(
            timeout=httpx.Timeout(_ANSWER_WITHIN, connect=_CONNECT_WITHIN),
            headers={"User-Agent": agent},
            verify=trusted(),
            limits=httpx.Limits(max_connections=32),
        )
        weakref.finalize(self, self._client.close)

    def call(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Raises Refused or Unreachable. A call whose answer was lost is repeated: it has to be
        one that can be."""
        fresh = False
        for attempt in range(1, self._tries + 1):
            last = attempt == self._tries
            try:
                answer = self._client.request(
                    method,
                    url,
                    params=query,
                    json=body,
                    headers={**(headers or {}), "Authorization": f"Bearer {self._token(fresh)}"},
                )
            except httpx.TransportError as error:
                if last:
                    raise Unreachable(str(error) or type(error).__name__) from error
                time.sleep(_pause(attempt, ""))
                continue
            if answer.status_code == 401 and not fresh and not last:
                fresh = True
                continue
            content = _json(answer)
            if answer.is_error and not last and self._passing(answer.status_code, content):
                time.sleep(_pause(attempt, answer.headers.get("retry-after", "")))
                continue
            return _checked(answer, content)
        raise AssertionError("the last try returns or raises")


def read_end(url: str, size: int) -> bytes:
    """The last bytes of what is there, without a token. Raises Refused or Unreachable."""
    patience = httpx.Timeout(_CONNECT_WITHIN)
    end = b""
    try:
        with httpx.stream("GET", url, timeout=patience, verify=trusted()) as answer:
            if answer.is_error:
                raise Refused(answer.status_code, answer.headers, "access denied", None)
            for piece in answer.iter_bytes():
                end = (end + piece)[-size:]
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise Unreachable(str(error) or type(error).__name__) from error
    return end


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        return None


def _checked(answer: httpx.Response, content: Any) -> Answer:
    if answer.status_code >= 400:
        raise Refused(answer.status_code, answer.headers, answer.text, content)
    return Answer(answer.status_code, answer.headers, content)


def _pause(attempt: int, wanted: str) -> float:
    """As long as the cloud asks for, or longer and longer; not all callers at the same moment."""
    if wanted.isdecimal():
        return min(float(wanted), _LONGEST_PAUSE)
    return min(0.25 * 2.0**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
