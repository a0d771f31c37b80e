"""The way to a store on a claim: through the API server, into a pod that has it.

A machine of the task has it. If none is there, a small pod is made for it, which ends by itself
when nobody asks for anything any more.
"""

from __future__ import annotations

import shlex
import threading
import time
import weakref
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.reasons import cannot_start, waiting
from sojourn.core.errors import CapacityError, Conflict, NotFound, SojournError, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.kube.api import Api, Object
    from sojourn.kube.websocket import Duplex
    from sojourn.storage.served.client import ServedStore
    from sojourn.storage.store import Store

__all__ = ["Door"]

_COMES_WITHIN = 900.0  # seconds for a pod
_WATCH_FOR = 3.0
_PAUSE = 0.1
_TELL_AFTER = 5.0
_UNSCHEDULED_FOR = 5.0  # seconds that a machine may look for a node before another pod is tried
# Exec works before the agent has unpacked itself.
_SERVE = """\
for _ in 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9; do
    [ -d {library} ] && break; sleep 0.2
done
mkdir -p {folder} &&
    PYTHONPATH={library} exec python3 -m sojourn.storage.served {folder} --signs {signs}
"""


class Door:
    """Opened when it is first needed, and kept open. `ctx`: of whoever is waiting just now."""

    def __init__(
        self,
        api: Api,
        id: TaskId,
        make: Callable[[], Object],
        folder: Callable[[], str],
        wanted: Callable[[], bool],
    ) -> None:
        self._api = api
        self._id = id
        self._make = make
        self._folder = folder
        self._wanted = wanted
        self._lock = threading.Lock()
        self._served: ServedStore | None = None
        self._end: weakref.finalize[..., Door] | None = None
        self._made = threading.Event()  # a pod, by us
        self._reached = threading.Event()  # a pod that has the store
        self.ctx: Context | None = None

    def store(self) -> Store:
        """The store, wherever it is just now."""
        from sojourn.storage.served.client import ServedStore

        with self._lock:
            if self._served is None:
                # Not to hold on to itself: who no longer has a door has closed it.
                behind = weakref.WeakMethod(self._stream)
                self._served = ServedStore(lambda: _called(behind))
                self._end = weakref.finalize(
                    self, _close, self._served, self._api, names.store_pod(self._id), self._made
                )
            return self._served

    @property
    def is_open(self) -> bool:
        """Whether somebody has got to the store, and not only asked for it."""
        return self._served is not None and self._reached.is_set()

    def close(self) -> None:
        """Let go of it; a pod that was made for it is removed."""
        with self._lock:
            self._served = None
            if self._end:
                self._end()

    def _stream(self) -> Duplex:
        """A new connection, wherever the store is by now."""
        from sojourn.kube.websocket import duplex

        pod = self._pod()
        command = _SERVE.format(
            library=places.LIBRARY, folder=shlex.quote(self._folder()), signs=places.SIGNS
        )
        stream = duplex(self._api, pod, names.AGENT, ["/bin/sh", "-c", command])
        self._reached.set()
        return stream

    def _pod(self) -> str:
        """The name of a pod that has the store, once it runs."""
        began = time.monotonic()
        told = ""
        while True:
            pods, version = self._api.list_at("Pod", names.of_task(self._id))
            running = [pod for pod in pods if _runs(pod)]
            if running:
                # A machine rather than a pod of our own, and the newest.
                running.sort(key=lambda pod: _role(pod) == names.STORE)
                return str(running[0]["metadata"]["name"])
            waited = time.monotonic() - began
            if waited > _COMES_WITHIN:
                raise Transient(self._why(pods), hint="Try again later.")
            if not self._expects_machine(pods, waited):
                self._make_pod(pods)
            if waited > _TELL_AFTER:
                told = self._tell(pods, told)
            with closing(self._changes(version)) as changes:
                if next(changes, None) is None:
                    time.sleep(_PAUSE)  # it may have ended at once

    def _expects_machine(self, pods: list[Object], waited: float) -> bool:
        """Whether a machine is about to come: one that looks for a node may look for long."""
        machines = [pod for pod in pods if _comes(pod) and _role(pod) == names.MACHINES]
        if any(not _unscheduled(pod) for pod in machines):
            return True
        if waited > _UNSCHEDULED_FOR:
            return False
        return bool(machines) or self._wanted()

    def _changes(self, version: str) -> Generator[Object, None, None]:
        """A pod that changed; nobody waits for it forever, as nothing may."""
        yield from self._api.watch("Pod", names.of_task(self._id), _WATCH_FOR, version)

    def _make_pod(self, pods: list[Object]) -> None:
        name = names.store_pod(self._id)
        old = next((pod for pod in pods if pod["metadata"]["name"] == name), None)
        if old and _comes(old):
            return
        if old:  # it has ended, because nobody asked it for anything
            self._api.delete("Pod", name, grace=0, uid=old["metadata"]["uid"])
        with suppress(Conflict):
            self._api.create("Pod", self._make())
            self._made.set()

    def _why(self, pods: list[Object]) -> str:
        reasons = [reason for pod in pods if (reason := waiting(self._api, pod))]
        return reasons[0] if reasons else "the pod that has the store does not start"

    def _tell(self, pods: list[Object], told: str) -> str:
        why = self._why(pods)
        for pod in pods:
            if never := cannot_start(self._api, pod):
                raise CapacityError(f"A pod of {self._id} cannot start: {never}")
        if why != told and self.ctx is not None:
            self.ctx.note(f"Waiting for a pod: {why}")
        return why


def _called(behind: weakref.WeakMethod[Callable[[], Duplex]]) -> Duplex:
    opened = behind()
    if opened is None:
        raise NotFound("The way to the store is closed")
    return opened()


def _close(served: ServedStore, api: Api, pod: str, made: threading.Event) -> None:
    served.close()
    if made.is_set():
        made.clear()
        with suppress(SojournError):
            api.delete("Pod", pod, grace=0)


def _runs(pod: Object) -> bool:
    """Whether the agent's container does."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    statuses = pod["status"].get("containerStatuses") or ()
    return any(item["name"] == names.AGENT and "running" in item["state"] for item in statuses)


def _role(pod: Object) -> str:
    return str(pod["metadata"]["labels"].get(names.ROLE))


def _comes(pod: Object) -> bool:
    return pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp")


def _unscheduled(pod: Object) -> bool:
    """Whether no node has it."""
    return not pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending"
