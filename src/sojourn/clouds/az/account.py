"""The user's subscription: calls, long operations, pages. Nothing is asked before it is needed."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import credentials
from sojourn.clouds.az.errors import translated
from sojourn.core.errors import MissingDependency, SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.clouds.vm.rest import Answer, Rest
    from sojourn.core.context import Context

__all__ = ["MANAGEMENT", "VERSIONS", "Account", "version_of"]

MANAGEMENT = "https://management.azure.com"
_TOKENS = "https://management.azure.com/.default"
_STORAGE_TOKENS = "https://storage.azure.com/.default"
# Of each provider's API; the empty one is of resource groups.
VERSIONS = {
    "": "2025-04-01",
    "microsoft.authorization": "2022-04-01",
    "microsoft.compute": "2024-11-01",
    "microsoft.compute/skus": "2021-07-01",
    "microsoft.compute/snapshots": "2024-03-02",
    "microsoft.insights": "2015-04-01",
    "microsoft.managedidentity": "2024-11-30",
    "microsoft.marketplaceordering": "2021-01-01",
    "microsoft.network": "2025-05-01",
    "microsoft.resources": "2025-04-01",
    "microsoft.storage": "2024-01-01",
}
_OF_ADDRESSES = "2018-10-01"  # of machines in scale sets
_OF_SUBSCRIPTION = "2022-12-01"
_AGAIN = 2.0  # seconds, where Azure names none
_AT_LEAST = 0.1
_END = 64 * 1024  # bytes


class Account:
    """Talks to one subscription; threads may share it."""

    def __init__(self, subscription: str = "", *, tries: int = 0) -> None:
        self._chosen = subscription  # empty: the one of the variable, or the default one
        self._tries = tries  # 0: as many as usual
        self._login = credentials.Login()
        self._lock = threading.Lock()

    @cached_property
    def subscription(self) -> str:
        """Its id. None is selected: raises AuthError."""
        return self._chosen or credentials.subscription()

    def address(self) -> str:
        """The subscription, which tells accounts apart; empty if none is selected."""
        try:
            return self.subscription
        except SojournError:
            return ""

    @property
    def scope(self) -> str:
        """Its id as a path."""
        return f"/subscriptions/{self.subscription}"

    @cached_property
    def _rest(self) -> Rest:
        try:
            from sojourn.clouds.vm.rest import Rest

            return Rest(lambda fresh: self._token(_TOKENS, fresh=fresh)[0], tries=self._tries)
        except ImportError as error:
            raise MissingDependency("az", "Azure needs httpx, which is not installed") from error

    def storage_token(self) -> tuple[str, float]:
        """A token for blobs, and when it ends."""
        return self._token(_STORAGE_TOKENS)

    def management_token(self) -> str:
        """A token for everything else."""
        return self._token(_TOKENS)[0]

    def _token(self, scope: str, *, fresh: bool = False) -> tuple[str, float]:
        with self._lock:  # credentials are not made for many threads
            return self._login.token(scope, fresh=fresh)

    def call(
        self,
        what: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Make a call; `what` is what the user knows it by. Returns the content of the answer."""
        return self._answer(what, method, path, body, query).json

    def asked(self, what: str, path: str) -> tuple[Any, datetime]:
        """The content of something, and the time that it is in Azure."""
        answer = self._answer(what, "GET", path, None, None)
        try:
            return answer.json, parsedate_to_datetime(answer.headers["date"])
        except (KeyError, ValueError, TypeError):
            return answer.json, datetime.now(timezone.utc)

    def _answer(
        self, what: str, method: str, path: str, body: Any, query: Mapping[str, str] | None
    ) -> Answer:
        whole = path if path.startswith("/") else f"{self.scope}/{path}".rstrip("/")
        asked = {"api-version": version_of(whole), **(query or {})}
        with self._lock:
            rest = self._rest
        with translated(what):
            return rest.call(method, f"{MANAGEMENT}{whole}", query=asked, body=body)

    def read_end(self, what: str, url: str) -> str:
        """The end of a text that whoever knows its address may read: no token goes there."""
        from sojourn.clouds.vm.rest import read_end

        with translated(what):
            return read_end(url, _END).decode(errors="replace")

    def follow(
        self,
        ctx: Context,
        what: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Make a call, and wait until what it began is done. Returns the content of its answer."""
        answer = self._answer(what, method, path, body, query)
        first = answer.json
        status = answer.headers.get("azure-asyncoperation", "")
        result = answer.headers.get("location", "") if answer.status == 202 else ""
        while status or result:
            ctx.sleep(_pause(answer))
            with translated(what):
                answer = self._rest.call("GET", status or result)
                if status and _ended(answer):
                    return first
            if not status and answer.status != 202:
                return answer.json or first
        return first

    def pages(self, what: str, path: str, query: Mapping[str, str] | None = None) -> Iterator[Any]:
        """All items of a list, however many pages it has."""
        page = self.call(what, "GET", path, query=query) or {}
        while True:
            yield from page.get("value", ())
            more = page.get("nextLink")
            if not more:
                return
            with translated(what):
                page = self._rest.call("GET", more).json or {}


def version_of(path: str) -> str:
    """The version of the API that a path belongs to."""
    _, mark, rest = path.lower().rpartition("/providers/")
    namespace, _, kind = rest.partition("/")
    if not mark:
        tail = path.lower().split("/")[3:]
        return _OF_SUBSCRIPTION if tail in ([], ["locations"]) else VERSIONS[""]
    if kind in ("", "register"):
        return VERSIONS[""]
    own = f"{namespace}/{kind.partition('/')[0]}"  # some kinds have versions of their own
    if own in VERSIONS:
        return VERSIONS[own]
    if kind.endswith("/publicipaddresses"):
        return _OF_ADDRESSES
    return VERSIONS[namespace]


def _pause(answer: Answer) -> float:
    wanted = answer.headers.get("retry-after", "")
    return max(float(wanted), _AT_LEAST) if wanted.isdecimal() else _AGAIN


def _ended(answer: Answer) -> bool:
    """Whether an operation is over; one that failed is an error like any other."""
    from sojourn.clouds.vm.rest import Refused

    content = answer.json or {}
    status = str(content.get("status", "")).lower()
    if status in ("failed", "canceled"):
        raise Refused(409, answer.headers, str(content.get("error")), content)
    return status == "succeeded"
