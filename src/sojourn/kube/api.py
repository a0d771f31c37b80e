"""The few calls on the API server that all the rest is built on.

Objects are what the server sends and takes: JSON as plain dictionaries. httpx's exceptions stop
here. Calls that got no answer are repeated for a while: all of them can be.
"""

from __future__ import annotations

import json
import threading
import time
import weakref
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from sojourn.core.errors import AuthError, Conflict, MissingDependency, NotFound
from sojourn.kube.errors import Expired, refusal, strange_answer, unreachable, untrusted
from sojourn.kube.login import Credentials

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterator

    import httpx

    from sojourn.kube.kubeconfig import Login

__all__ = ["Api", "Object"]

Object = dict[str, Any]

_TIMEOUT = 30.0  # seconds for an answer
_CONNECT = 5.0
_RETRY_FOR = 20.0
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
_LATER = (429, 500, 502, 503, 504)
_PAGE = 500  # objects of one answer
_LONGEST_PAUSE = 10.0  # seconds, whatever the server asks for
_MANAGER = "sojourn"  # of fields that were applied
_APPLY = "application/apply-patch+yaml"  # of which JSON is a part
_AFTER_WATCH = 0.5  # seconds, if there was nothing to watch: whoever asks will ask again


class _Place(NamedTuple):
    root: str
    plural: str
    namespaced: bool = True


_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_KINDS = {
    "ClusterRole": _Place(_RBAC, "clusterroles", namespaced=False),
    "ClusterRoleBinding": _Place(_RBAC, "clusterrolebindings", namespaced=False),
    "ConfigMap": _Place("/api/v1", "configmaps"),
    "CustomResourceDefinition": _Place(
        "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False
    ),
    "Deployment": _Place("/apis/apps/v1", "deployments"),
    "Event": _Place("/api/v1", "events"),
    "Job": _Place("/apis/batch/v1", "jobs"),
    "Lease": _Place("/apis/coordination.k8s.io/v1", "leases"),
    "LocalQueue": _Place("/apis/kueue.x-k8s.io/v1beta1", "localqueues"),
    "MPIJob": _Place("/apis/kubeflow.org/v2beta1", "mpijobs"),
    "Namespace": _Place("/api/v1", "namespaces", namespaced=False),
    "NetworkPolicy": _Place("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Node": _Place("/api/v1", "nodes", namespaced=False),
    "PersistentVolumeClaim": _Place("/api/v1", "persistentvolumeclaims"),
    "Pod": _Place("/api/v1", "pods"),
    "PodGroup": _Place("/apis/scheduling.volcano.sh/v1beta1", "podgroups"),
    "Role": _Place("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": _Place("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Secret": _Place("/api/v1", "secrets"),
    "SelfSubjectAccessReview": _Place(
        "/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", namespaced=False
    ),
    "SelfSubjectReview": _Place(
        "/apis/authentication.k8s.io/v1", "selfsubjectreviews", namespaced=False
    ),
    "Service": _Place("/api/v1", "services"),
    "ServiceAccount": _Place("/api/v1", "serviceaccounts"),
    "StorageClass": _Place("/apis/storage.k8s.io/v1", "storageclasses", namespaced=False),
}


class Api:
    """One cluster and one namespace, as somebody who is logged in. Constructors do no I/O."""

    def __init__(self, login: Callable[[], Login], *, patience: float = _RETRY_FOR) -> None:
        self._load = login
        self._patience = patience
        self._lock = threading.Lock()
        self._connected: tuple[int, httpx.Client] | None = None

    @cached_property
    def login(self) -> Login:
        return self._load()

    @cached_property
    def credentials(self) -> Credentials:
        return Credentials(self.login)

    @property
    def namespace(self) -> str:
        return self.login.namespace

    def inside(self, namespace: str) -> Api:
        """The same in another namespace; empty: in all of them, which can only be listed."""
        return Api(lambda: replace(self.login, namespace=namespace), patience=self._patience)

    @property
    def _client(self) -> httpx.Client:
        """The connections; new ones when there is a new certificate."""
        renewals = self.credentials.renewals
        with self._lock:
            if self._connected is None or self._connected[0] != renewals:
                # A former one is not closed: others may be using it just now.
                self._connected = (renewals, self._connect())
            return self._connected[1]

    def _connect(self) -> httpx.Client:
        try:
            import httpx  # not free, and only needed here
        except ImportError as error:
            raise MissingDependency("k8s", "Kubernetes support is not installed") from error
        cluster = self.login.cluster
        tls = self.credentials.tls()
        if cluster.proxy and not cluster.proxy.startswith("http://"):
            raise _unsupported_proxy()  # commands and uploads could not go by way of it
        try:
            client = httpx.Client(
                base_url=cluster.server,
                verify=tls if tls is not None else True,
                proxy=cluster.proxy or None,
                trust_env=False,  # the proxy was looked up before, as kubectl does
                timeout=httpx.Timeout(_TIMEOUT, connect=_CONNECT),
                limits=httpx.Limits(max_connections=32, max_keepalive_connections=8),
            )
        except (ValueError, ImportError, httpx.InvalidURL):  # SOCKS needs another package
            raise _unsupported_proxy() from None
        weakref.finalize(self, client.close)
        return client

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
        return self.list_at(kind, labels, fields)[0]

    def list_at(
        self, kind: str, labels: str = "", fields: str = ""
    ) -> tuple[builtins.list[Object], str]:
        """All objects with these labels, and the version from which to watch them."""
        try:
            return self._list(kind, labels, fields, _PAGE)
        except Expired:  # it took too long to ask for the next page
            return self._list(kind, labels, fields, 0)

    def _list(
        self, kind: str, labels: str, fields: str, limit: int
    ) -> tuple[builtins.list[Object], str]:
        found: list[Object] = []
        asked = {"limit": str(limit or ""), "labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in asked.items() if value}
        while True:
            page = self._json("GET", kind, query=query)
            found += page.get("items") or []
            metadata = page.get("metadata") or {}
            query["continue"] = str(metadata.get("continue") or "")
            if not query["continue"]:
                return found, str(metadata.get("resourceVersion") or "")

    def create(self, kind: str, body: Object, *, dry_run: bool = False) -> Object:
        """Make an object. There is one of this name: raises Conflict."""
        return self._json("POST", kind, body=body, query={"dryRun": "All"} if dry_run else {})

    def replace(self, kind: str, body: Object) -> Object:
        """Write an object as a whole; somebody else changed it meanwhile: raises Conflict."""
        return self._json("PUT", kind, str(body["metadata"]["name"]), body=body)

    def merge(self, kind: str, name: str, body: Object) -> Object:
        """Change parts of an object. Absent: raises NotFound."""
        return self._json("PATCH", kind, name, body=body, content="application/merge-patch+json")

    def apply(self, kind: str, body: Object, *, dry_run: bool = False) -> Object:
        """Make an object, or change it to this; others' fields stay (a server-side apply).

        Somebody else changed one of these fields: raises Conflict, which names it.
        """
        query = {"fieldManager": _MANAGER, **({"dryRun": "All"} if dry_run else {})}
        name = str(body["metadata"]["name"])
        return self._json("PATCH", kind, name, body=body, query=query, content=_APPLY)

    def serves(self, kind: str) -> bool:
        """Whether the server has this kind, which everybody may ask."""
        place = _KINDS[kind]
        try:
            found = self._call(kind, "GET", place.root, {}, None, "application/json")
        except NotFound:
            return False
        return any(each.get("name") == place.plural for each in found.get("resources") or [])

    def delete(
        self,
        kind: str,
        name: str,
        *,
        grace: int | None = None,
        uid: str = "",
        owned_first: bool = False,
    ) -> None:
        """Remove an object and all that it owns. Absent: nothing to do.

        `owned_first`: it stays until all that it owns is gone.
        """
        body: Object = {"propagationPolicy": "Foreground" if owned_first else "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._json("DELETE", kind, name, body=body)
        except NotFound:
            return
        except Conflict:
            if not uid:  # else there is another one of this name by now
                raise

    def version(self) -> tuple[int, int]:
        """Of the server."""
        found = self._call("version", "GET", "/version", {}, None, "application/json")
        try:
            return int(found["major"]), int("".join(filter(str.isdigit, found["minor"])))
        except (KeyError, ValueError, TypeError) as error:
            raise strange_answer(self.login.cluster.server) from error

    def watch(self, kind: str, labels: str, seconds: float, since: str = "") -> Iterator[Object]:
        """Changed objects as they change, for this long at most; may end earlier.

        `since`: a version from `list_at`. Without it, all that there are come first.
        """
        import httpx

        query = {
            "watch": "true",
            "labelSelector": labels,
            "timeoutSeconds": str(max(1, int(seconds))),
            **({"resourceVersion": since} if since else {}),
        }
        timeout = httpx.Timeout(seconds + 5, connect=_CONNECT)
        login = self.credentials.headers()
        try:
            with self._client.stream(
                "GET", self._path(kind, ""), params=query, headers=login, timeout=timeout
            ) as answer:
                if answer.status_code == 200:
                    for line in answer.iter_lines():
                        event = json.loads(line)
                        if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                            break
                        if event["type"] != "BOOKMARK":
                            yield {"type": event["type"], **event["object"]}
                    else:
                        return
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            pass
        time.sleep(min(_AFTER_WATCH, seconds))

    def _path(self, kind: str, name: str) -> str:
        place = _KINDS[kind]
        namespaced = place.namespaced and self.namespace
        inside = f"/namespaces/{quote(self.namespace, '')}" if namespaced else ""
        return f"{place.root}{inside}/{place.plural}" + (f"/{quote(name, '')}" if name else "")

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

        server = self.login.cluster.server
        give_up = time.monotonic() + self._patience
        refused: dict[str, str] | None = None
        renewed = False
        data = json.dumps(body).encode() if body is not None else None
        for pause in _endless(_PAUSES):
            login = self.credentials.headers(refused=refused)
            refused = None
            try:
                answer = self._client.request(
                    method,
                    path,
                    params=query,
                    content=data,
                    headers={"Content-Type": content, **login},
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if distrust := untrusted(server, error):
                    raise distrust from error
                if time.monotonic() + pause > give_up:
                    raise unreachable(server, error) from error
                time.sleep(pause)
                continue
            code = answer.status_code
            if code == 401 and self.credentials.can_renew and not renewed:
                renewed, refused = True, login
                continue
            if code < 300:
                return _body(answer, server)
            told = _status(answer)
            rest = _asked_pause(answer) or pause
            if _passes(method, code, told) and time.monotonic() + rest < give_up:
                time.sleep(rest)
                continue
            raise refusal(what, code, told, self.namespace)
        raise AssertionError  # the pauses never end


def _unsupported_proxy() -> AuthError:
    """Not named: it may have a password in it."""
    return AuthError(
        "The proxy of the Kubernetes API server is not valid or not supported",
        hint="Check proxy-url in your kubeconfig and HTTPS_PROXY; use an http:// proxy.",
    )


def _endless(pauses: tuple[float, ...]) -> Iterator[float]:
    yield from pauses
    while True:
        yield pauses[-1]


def _passes(method: str, code: int, status: Object) -> bool:
    """Whether it may go better in a moment."""
    if code == 409 and method == "POST":  # a quota that many count in, not an object of this name
        return status.get("reason") == "Conflict"
    return code in _LATER


def _asked_pause(answer: httpx.Response) -> float:
    try:
        return max(0.0, min(float(answer.headers["Retry-After"]), _LONGEST_PAUSE))
    except (KeyError, ValueError):
        return 0.0


def _body(answer: httpx.Response, server: str) -> Object:
    try:
        return dict(answer.json())
    except (ValueError, TypeError) as error:  # a page to log in, of a proxy
        raise strange_answer(server) from error


def _status(answer: httpx.Response) -> Object:
    try:
        found = answer.json()
    except ValueError:
        return {"message": " ".join(answer.text.split())[:300]}
    return found if isinstance(found, dict) else {}
