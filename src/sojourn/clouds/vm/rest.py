"""Calls of a cloud's JSON API: with a token, and with patience for what may pass."""

from __future__ import annotations

import random
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Answer", "Refused", "Rest", "Unreachable"]

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


class Rest:
    """A client; threads may share it.

    `token` has the bearer token of the moment; it is told to make a new one if that was rejected.
    """

    def __init__(self, token: Callable[[bool], str], *, tries: int = 0, agent: str = "sojourn"):
        self._token = token
        self._tries = tries or _TRIES
        self._client = httpx.Client(
            timeout=httpx.Timeout(_ANSWER_WITHIN, connect=_CONNECT_WITHIN),
            headers={"User-Agent": agent},
            limits=httpx.Limits(max_connections=32),
        )
        weakref.finalize(self, self._client.close)  # whoever forgets to leaves no connection open

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
            if answer.status_code == 401 and not fresh:
                fresh = True
                continue
            if answer.status_code in _LATER and not last:
                time.sleep(_pause(attempt, answer.headers.get("retry-after", "")))
                continue
            return _checked(answer)
        raise Unreachable("no answer")

    def close(self) -> None:
        self._client.close()


def _checked(answer: httpx.Response) -> Answer:
    try:
        content = answer.json() if answer.content else None
    except ValueError:
        content = None
    if answer.status_code >= 400:
        raise Refused(answer.status_code, answer.headers, answer.text, content)
    return Answer(answer.status_code, answer.headers, content)


def _pause(attempt: int, wanted: str) -> float:
    """As long as the cloud asks for, or longer and longer; not all callers at the same moment."""
    if wanted.isdecimal():
        return min(float(wanted), _LONGEST_PAUSE)
    return min(0.25 * 2.0**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
