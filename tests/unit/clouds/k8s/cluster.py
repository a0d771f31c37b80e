"""A cluster in memory, as far as `Api` shows one: objects by kind and name."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable
from typing import Any

from sojourn.core.errors import Conflict, NotFound, SojournError

Object = dict[str, Any]


class MemoryApi:
    """Takes what `Api` takes. `before` is called before each change; `errors` are by kind."""

    namespace = "test"

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.before: Callable[[], None] = lambda: None
        self.errors: dict[str, SojournError] = {}
        self.created: list[tuple[str, Object]] = []
        self.answers: dict[str, Callable[[Object], Object]] = {}
        self._lock = threading.Lock()
        self._versions = itertools.count(1)

    def add(self, kind: str, name: str, **more: Any) -> Object:
        metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        made = {**more, "metadata": {**metadata, **more.get("metadata", {})}}
        made["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[kind, name] = made
        return made

    def get(self, kind: str, name: str) -> Object:
        self._fail(kind)
        with self._lock:
            if (kind, name) not in self.objects:
                raise NotFound(f"{kind} {name} not found")
            return copy.deepcopy(self.objects[kind, name])

    def find(self, kind: str, name: str) -> Object | None:
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def list(self, kind: str, labels: str = "", fields: str = "") -> list[Object]:
        self._fail(kind)
        found = [item for (of, _), item in self.objects.items() if of == kind]
        if fields:
            name = fields.removeprefix("involvedObject.name=")
            found = [item for item in found if item["involvedObject"]["name"] == name]
        return copy.deepcopy(found)

    def create(self, kind: str, body: Object, *, dry_run: bool = False) -> Object:
        self._fail(kind)
        self.created.append((kind, body))
        return self.answers[kind](body)

    def replace(self, kind: str, body: Object) -> Object:
        self.before()
        with self._lock:
            name = body["metadata"]["name"]
            known = self.objects[kind, name]["metadata"]["resourceVersion"]
            if known != body["metadata"]["resourceVersion"]:
                raise Conflict(f"{kind} {name} was changed")
            made = copy.deepcopy(body)
            made["metadata"]["resourceVersion"] = str(next(self._versions))
            self.objects[kind, name] = made
            return made

    def _fail(self, kind: str) -> None:
        if kind in self.errors:
            raise self.errors[kind]
