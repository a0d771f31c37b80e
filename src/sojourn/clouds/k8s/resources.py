"""What a task is made of beside its Jobs and the agent: a Secret, a claim."""

from __future__ import annotations

import base64
import json
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.files import numbered
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import options_of
from sojourn.clouds.k8s.pod import GRACE
from sojourn.core.errors import Conflict, NotFound, Transient

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.clouds.k8s.objects import TaskObjects
    from sojourn.core.context import Context

__all__ = ["BucketFolder", "Claim", "ClaimFolder", "FilesMap", "Made", "TaskSecret", "gone"]

_TTL = 60.0
_LOOK = 1.0  # seconds between looks of an agent for followers and for ranks to take
_GONE_WITHIN = 300.0


class Made:
    """One object, named after the task."""

    stage = 1
    kind = ""

    def __init__(self, objects: TaskObjects) -> None:
        self._objects = objects
        self._api = objects.api

    @property
    def title(self) -> str:
        return f"{self.kind} {self._name}"

    @property
    def _name(self) -> str:
        return self._objects.name

    def read(self, ctx: Context) -> bool:
        return self._api.find(self.kind, self._name) is not None

    def _create(self, body: dict[str, Any]) -> None:
        """If it is there already, it is ours: names are the task's."""
        with suppress(Conflict):
            self._api.create(self.kind, body)

    def _metadata(self) -> dict[str, Any]:
        return names.metadata(self._objects.id, self._name, self._objects.task)

    def delete(self, ctx: Context) -> None:
        self._api.delete(self.kind, self._name)
        gone(ctx, lambda: self._api.find(self.kind, self._name) is None, self.title)


class TaskSecret(Made):
    """The task itself, its environment, and what the agent is told. It tells that there is one."""

    stage = 0
    kind = "Secret"

    def create(self, ctx: Context) -> None:
        objects = self._objects
        task = objects.task
        settings = {
            "folder": objects.folder,
            "grace": GRACE,
            "hold": objects.holds,
            "id": objects.name,
            "look": _LOOK,
            "mpi": asdict(task.mpi) if task.mpi else None,
            "ranks": task.parallelism,
            "store": objects.place.url or f"file://{objects.folder}",
            "ttl": _TTL,
        }
        data = {places.SETTINGS: json.dumps(settings, sort_keys=True)}
        if objects.place.url:
            data[places.STORE_OPTIONS] = json.dumps(dict(task.storage.container_opts))
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        self._create({"metadata": self._metadata(), "data": encoded, "type": "Opaque"})


class FilesMap(Made):
    """What all machines of a task have at the same paths."""

    kind = "ConfigMap"

    @property
    def title(self) -> str:
        return f"{self.kind} {self._name}"

    @property
    def _name(self) -> str:
        return names.files(self._objects.id)

    def read(self, ctx: Context) -> bool:
        return self._api.find(self.kind, self._name) is not None

    def create(self, ctx: Context) -> None:
        metadata = names.metadata(self._objects.id, self._name, self._objects.task)
        data = {
            key: base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
            for key, _, text in numbered(self._objects.task)
        }
        self._create({"metadata": metadata, "binaryData": data})

    def delete(self, ctx: Context) -> None:
        self._api.delete(self.kind, self._name)
        gone(ctx, lambda: not self.read(ctx), self.title)


class Claim(Made):
    """The volume with the store."""

    kind = "PersistentVolumeClaim"

    def create(self, ctx: Context) -> None:
        task, options = self._objects.task, options_of(self._objects.task)
        mode = "ReadWriteOnce" if task.parallelism == 1 else "ReadWriteMany"
        spec: dict[str, Any] = {
            "accessModes": [mode],
            "resources": {"requests": {"storage": f"{options.disk}G"}},
        }
        if options.storage_class:
            spec["storageClassName"] = options.storage_class
        self._create({"metadata": self._metadata(), "spec": spec})


class ClaimFolder:
    """The task's folder in a claim of the user's, beside which others are left alone."""

    stage = 1

    def __init__(self, objects: TaskObjects) -> None:
        self._objects = objects

    @property
    def title(self) -> str:
        return f"folder {self._objects.place.folder} of claim {self._objects.place.claim}"

    def read(self, ctx: Context) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        name = self._objects.place.claim
        if self._objects.api.find("PersistentVolumeClaim", name) is None:
            raise NotFound(f"Claim {name} not found", hint="Check storage.container.")

    def delete(self, ctx: Context) -> None:
        store = self._objects.door.store()
        store.delete([item.path for item in store.list("")])
        self._objects.door.close()


def gone(ctx: Context, check: Callable[[], bool], title: str) -> None:
    """Wait until something is."""
    waiting = ctx.within(_GONE_WITHIN)
    pause = 0.05
    began = time.monotonic()
    while not check():
        try:
            waiting.sleep(pause)
        except Transient as error:
            raise Transient(
                f"{title} is still being deleted after {time.monotonic() - began:.0f} seconds",
                hint="Try again to continue where it stopped.",
            ) from error
        pause = min(pause * 1.5, 1.0)


class BucketFolder:
    """The task's folder in a bucket of the user's."""

    stage = 1

    def __init__(self, objects: TaskObjects) -> None:
        self._objects = objects

    @property
    def title(self) -> str:
        return f"folder {self._objects.place.url}"

    def read(self, ctx: Context) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        """It comes with the first object."""

    def delete(self, ctx: Context) -> None:
        store = self._objects.bucket
        store.delete([item.path for item in store.list("")])
