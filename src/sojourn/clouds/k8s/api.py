"""The few calls on the API server that all the rest is built on.

Objects are what the server sends and takes: JSON as plain dictionaries. httpx's exceptions stop
here. Calls that got no answer are repeated for a while: all of them can be.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.clouds.k8s.errors import refusal, unreachable
from sojourn.clouds.k8s.login import Credentials
from sojourn.core.errors import MissingDependency, NotFound, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from sojourn.clouds.k8s.kubeconfig import Login

__all__ = ["Api", "Object"]

Object = dict[str, Any]

_TIMEOUT = 30.0  # seconds for an answer
_CONNECT = 5.0
_RETRY_FOR = 20.0
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
_LATER = (429, 500, 502, 503, 504)
_PAGE = 500  # objects of one answer
_LONGEST_PAUSE = 10.0  # seconds, whatever the server asks for


class _Place(NamedTuple):
    root: str
    plural: str
    namespaced: bool = True


_KINDS = {
    "ConfigMap": _Place("/api/v1", "configmaps"),
    "Event": _Place("/api/v1", "events"),
    "Job": _Place("/apis/batch/v1", "jobs"),
    "Namespace": _Place("/api/v1", "namespaces", namespaced=False),
    "Node": _Place("/api/v1", "nodes", namespaced=False),
    "PersistentVolumeClaim": _Place("/api/v1", "persistentvolumeclaims"),
    "Pod": _Place("/api/v1", "pods"),
    "Secret": _Place("/api/v1", "secrets"),
    "SelfSubjectAccessReview": _Place(
        "/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", namespaced=False
    ),
    "SelfSubjectReview": _Place(
        "/apis/authentication.k8s.io/v1", "selfsubjectreviews", namespaced=False
    ),
    "ServiceAccount": _Place("/api/v1", "serviceaccounts"),
    "StorageClass": _Place("/apis/storage.k8s.io/v1", "storageclasses", namespaced=False),
}


class Api:
    """One cluster and one namespace, as somebody who is logged in. Constructors do no I/O."""

    def __init__(self, login: Callable[[], Login], *, patience: float = _RETRY_FOR) -> None:
        self._load = login
        self._patience = patience

    @cached_property
    def login(self) -> Login:
        return self._load()

    @cached_property
    def credentials(self) -> Credentials:
        return Credentials(self.login)

    @property
    def namespace(self) -> str:
        return self.login.namespace

    @cached_property
    def _client(self) -> httpx.Client:
        try:
            import httpx  # not free, and only needed here
        except ImportError as error:
            raise MissingDependency("k8s", "Kubernetes support is not installed") from error
        cluster = self.login.cluster
        tls = self.credentials.tls()
        return httpx.Client(
            base_url=cluster.server,
            verify=tls if tls is not None else True,
            proxy=cluster.proxy or None,
            timeout=httpx.Timeout(_TIMEOUT, connect=_CONNECT),
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
        )

    def get(self, kind: str, name: str) -> Object:
        """One object. Absent: raises NotFound."""
        return self._json("GET", kind, name)

    def find(self, kind: str, name: str) -> Object | None:
        """One object. Absent: None."""
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def list(self, kind: str, labels: str = "", fields: str = "") -> list[Object]:
        """All objects with these labels."""
        found: list[Object] = []
        query = {"limit": str(_PAGE), "labelSelector": labels, "fieldSelector": fields}
        while True:
            page = self._json("GET", kind, query={k: v for k, v in query.items() if v})
            found += page.get("items") or []
            query["continue"] = str(page.get("metadata", {}).get("continue") or "")
            if not query["continue"]:
                return found

    def create(self, kind: str, body: Object, *, dry_run: bool = False) -> Object:
        """Make an object. There is one of this name: raises Conflict."""
        return self._json("POST", kind, body=body, query={"dryRun": "All"} if dry_run else {})

    def replace(self, kind: str, body: Object) -> Object:
        """Write an object as a whole; somebody else changed it meanwhile: raises Conflict."""
        return self._json("PUT", kind, str(body["metadata"]["name"]), body=body)

    def merge(self, kind: str, name: str, body: Object) -> Object:
        """Change parts of an object. Absent: raises NotFound."""
        return self._json("PATCH", kind, name, body=body, content="application/merge-patch+json")

    def delete(self, kind: str, name: str, *, grace: int | None = None, uid: str = "") -> None:
        """Remove an object and all that it owns. Absent: nothing to do."""
        body: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if uid:
            body["preconditions"] = {"uid": uid}
        with suppress(NotFound):
            self._json("DELETE", kind, name, body=body)

    def version(self) -> tuple[int, int]:
        """Of the server."""
        found = self._call("version", "GET", "/version", {}, None, "application/json")
        return int(found["major"]), int("".join(filter(str.isdigit, found["minor"])))

    def watch(self, kind: str, labels: str, seconds: float) -> Iterator[Object]:
        """Changed objects as they change, for this long at most; may end earlier."""
        import httpx

        query = {
            "watch": "true",
            "labelSelector": labels,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        timeout = httpx.Timeout(seconds + 5, connect=_CONNECT)
        try:
            with self._client.stream(
                "GET",
                self._path(kind, ""),
                params=query,
                headers=self.credentials.headers(),
                timeout=timeout,
            ) as answer:
                if answer.status_code != 200:
                    return
                for line in answer.iter_lines():
                    event = json.loads(line)
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        yield {"type": event["type"], **event["object"]}
        except (httpx.HTTPError, ValueError):
            return

    def _path(self, kind: str, name: str) -> str:
        place = _KINDS[kind]
        inside = f"/namespaces/{self.namespace}" if place.namespaced else ""
        return f"{place.root}{inside}/{place.plural}" + (f"/{name}" if name else "")

    def _json(
        self,
        method: str,
        kind: str,
        name: str = "",
        *,
        body: Object | None = None,
        query: dict[str, str] | None = None,
        content: str = "application/json",
    ) -> Object:
        shown = name or str((body or {}).get("metadata", {}).get("name", ""))
        what = f"{kind} {shown}".strip()
        return self._call(what, method, self._path(kind, name), query or {}, body, content)

    def _call(
        self,
        what: str,
        method: str,
        path: str,
        query: dict[str, str],
        body: Object | None,
        content: str,
    ) -> Object:
        import httpx

        give_up = time.monotonic() + self._patience
        renewed = False
        for pause in _endless(_PAUSES):
            headers = {"Content-Type": content, **self.credentials.headers(renew=renewed)}
            data = json.dumps(body).encode() if body is not None else None
            try:
                answer = self._client.request(
                    method, path, params=query, content=data, headers=headers
                )
            except httpx.HTTPError as error:
                if time.monotonic() + pause > give_up:
                    raise unreachable(self.login.cluster.server, error) from error
                time.sleep(pause)
                continue
            if answer.status_code < 300:
                return dict(answer.json())
            if answer.status_code == 401 and self.credentials.can_renew and not renewed:
                renewed = True
                continue
            if answer.status_code in _LATER and time.monotonic() + pause < give_up:
                time.sleep(_asked_pause(answer) or pause)
                continue
            raise refusal(what, answer.status_code, _status(answer), self.namespace)
        raise Transient("unreachable")  # the pauses never end


def _endless(pauses: tuple[float, ...]) -> Iterator[float]:
    yield from pauses
    while True:
        yield pauses[-1]


def _asked_pause(answer: httpx.Response) -> float:
    try:
        return min(float(answer.headers["Retry-After"]), _LONGEST_PAUSE)
    except (KeyError, ValueError):
        return 0.0


def _status(answer: httpx.Response) -> Object:
    try:
        found = answer.json()
    except ValueError:
        return {"message": answer.text[:300]}
    return found if isinstance(found, dict) else {}
