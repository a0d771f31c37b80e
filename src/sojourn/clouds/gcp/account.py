"""The user's project: its login and the calls of its APIs. Nothing is asked before it is needed."""

from __future__ import annotations

import os
import threading
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sojourn.clouds.gcp.credentials import log_in
from sojourn.clouds.gcp.errors import may_pass, of_operation, translated
from sojourn.clouds.vm.rest import Rest
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.gcp.credentials import Login
    from sojourn.core.context import Context

__all__ = ["Account"]

_ENDPOINT = "SOJOURN_GCP_ENDPOINT"
_COMPUTE = "compute/v1/"
_FIRST_LOOK = 0.1  # seconds, and then longer and longer
_LOOK_EVERY = 2.0
_CHANGES = frozenset(("POST", "PATCH", "DELETE"))


class Account:
    """Makes calls; threads may share it."""

    def __init__(self, *, project: str = "", credentials: str = "", tries: int = 0) -> None:
        self._asked = {"project": project, "file": credentials}
        self._tries = tries  # 0: as many as usual
        self._lock = threading.Lock()
        self._login: Login | None = None
        self._rest: Rest | None = None

    @property
    def login(self) -> Login:
        with self._lock:
            if self._login is None:
                self._login = log_in(**self._asked)
            return self._login

    @property
    def project(self) -> str:
        return self.login.project

    def address(self) -> str:
        """The project, which tells accounts apart; empty if there is no login."""
        try:
            return self.project
        except SojournError:
            return ""

    def url(self, service: str, path: str = "") -> str:
        """Of a service, such as `storage`; another endpoint has the host as the first of a path."""
        host = f"{service}.googleapis.com"
        other = os.environ.get(_ENDPOINT, "").rstrip("/")
        if other and not other.startswith(("http://", "https://")):
            raise SojournError(
                f"Invalid endpoint: {other}", hint=f"Check {_ENDPOINT}; it must be a URL."
            )
        return f"{other}/{host}/{path}" if other else f"https://{host}/{path}"

    def call(
        self, what: str, service: str, method: str, path: str, body: Any = None, **query: Any
    ) -> Any:
        """Carry out a call; `what` is what the user knows it by."""
        login = self.login
        with self._lock:
            if self._rest is None:
                self._rest = Rest(login.token, tries=self._tries, passing=may_pass)
            rest = self._rest
        with translated(what, login):
            answer = rest.call(method, self.url(service, path), query=query or None, body=body)
        return {} if answer.json is None else answer.json

    def pages(self, what: str, service: str, path: str, **query: Any) -> Iterator[Any]:
        """All pages of a list."""
        while True:
            page = self.call(what, service, "GET", path, **query)
            yield page
            if not page.get("nextPageToken"):
                return
            query["pageToken"] = page["nextPageToken"]

    def compute(self, what: str, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """A call of Compute Engine, below the project. What it begins may not have ended."""
        if method in _CHANGES and not path.endswith("/listManagedInstances"):
            query["requestId"] = str(uuid.uuid4())  # so that it can be repeated
        full = f"{_COMPUTE}projects/{self.project}/{path}"
        return self.call(what, "compute", method, full, body, **query)

    def change(
        self, ctx: Context, what: str, method: str, path: str, body: Any = None, **query: Any
    ) -> None:
        """Such a call, until what it began has ended."""
        self.finish(ctx, what, self.compute(what, method, path, body, **query))

    def finish(self, ctx: Context, what: str, operation: Any) -> None:
        """Wait for an operation; one that failed is an error."""
        pause = _FIRST_LOOK
        while operation["status"] != "DONE":
            ctx.sleep(pause)
            pause = min(pause * 1.5, _LOOK_EVERY)
            path = urlsplit(operation["selfLink"]).path.partition("/projects/")[2]
            full = f"{_COMPUTE}projects/{path}"
            operation = self.call(what, "compute", "GET", full)
        if operation.get("error"):
            raise of_operation(what, operation)
