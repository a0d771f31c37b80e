"""The MPIJob of a task, as the engine sees it: it keeps all ranks alive, or none."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.mpijob import KIND, given_up, paused
from sojourn.clouds.k8s.reasons import last_events, shortened, waiting
from sojourn.clouds.k8s.resources import gone
from sojourn.clouds.k8s.scaler import KubernetesScaler, fleet_of
from sojourn.core.errors import Conflict, NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Fleet
    from sojourn.kube.api import Object

__all__ = ["MpiScaler"]

_REFUSED = ("ValidationError", "ErrResourceExists")  # events of which nothing else tells


class MpiScaler(KubernetesScaler):
    """One MPIJob. A suspended one has no pods; uploads go through a pod of their own."""

    @property
    def title(self) -> str:
        return f"{KIND} {self._objects.name}"

    def read(self, ctx: Context) -> bool:
        return self._found() is not None

    def _found(self) -> Object | None:
        return self._objects.mpijob_found()

    def create(self, ctx: Context) -> None:
        """Without an upload to wait for, its pods may come at once."""
        if self._found() is None:
            self._create(suspend=bool(self._objects.task.storage.workdir))

    def _create(self, *, suspend: bool) -> None:
        with suppress(Conflict):
            self._api.create(KIND, self._objects.mpijob(suspend=suspend))

    def delete(self, ctx: Context) -> None:
        """What the operator made for it goes with it."""
        self._api.delete(KIND, self._objects.name)
        super().delete(ctx)

    def _all_gone(self) -> bool:
        return self._found() is None and super()._all_gone()

    def scale(self, ctx: Context, machines: int) -> None:
        found = self._found()
        if found is None:
            raise NotFound(f"No {self.title} found")
        if machines:
            with suppress(SojournError):
                self._api.delete("Pod", names.store_pod(self._objects.id), grace=0)
            if given_up(found):
                self._renew_whole(ctx)
                return
        if paused(found) == bool(machines):
            change = {"spec": {"runPolicy": {"suspend": not machines}}}
            self._api.merge(KIND, self._objects.name, change)

    def _renew_whole(self, ctx: Context) -> None:
        """One that has ended, though its ranks have not, makes no pods any more."""
        self._api.delete(KIND, self._objects.name)
        gone(ctx, lambda: self._found() is None, self.title)
        for pod in self._objects.pods(role=names.MACHINES):
            gone(ctx, partial(self._pod_is_gone, pod["metadata"]["name"]), self.title)
        self._create(suspend=False)

    def _pod_is_gone(self, name: str) -> bool:
        return self._api.find("Pod", name) is None

    def fleet(self, ctx: Context) -> Fleet | None:
        found = self._found()
        if found is None:
            return None
        ended = given_up(found)
        wanted = 0 if ended or paused(found) else self._objects.task.parallelism
        return fleet_of(self._objects, wanted, stuck=bool(ended and ended["type"] == "Failed"))

    def obstacle(self, ctx: Context) -> str:
        for pod in self._objects.pods(role=names.MACHINES):
            if why := waiting(self._api, pod):
                return why
        found = self._found()
        if found is None or paused(found):
            return ""
        if (ended := given_up(found)) and ended["type"] == "Failed":
            return f"Kubernetes gave up: {shortened(ended.get('message', ''))}"
        told = [e for e in last_events(self._api, self._objects.name) if e["reason"] in _REFUSED]
        if told:
            return f"mpi-operator refused the {KIND}: {shortened(told[-1].get('message', ''))}"
        if not (found.get("status") or {}).get("conditions"):
            return (
                f"mpi-operator has not looked at the {KIND} yet: if this lasts, check that its pod "
                "in the namespace mpi-operator runs"
            )
        return ""
