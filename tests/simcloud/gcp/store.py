"""Resources of Compute Engine, by their paths: `projects/P/zones/Z/instances/NAME`.

Which resources there can be, and what becomes of them, does not belong here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.simcloud.gcp.project import NUMBER, PROJECT, ROOT
from tests.simcloud.gcp.wire import GCPError, invalid, not_found

Record = dict[str, Any]


class Store:
    """All records. Those that are still being made are reserved, and not found."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._coming: set[str] = set()

    def add(self, path: str, record: Record) -> None:
        self._coming.discard(path)
        self._records[path] = record

    def reserve(self, path: str) -> None:
        """Take a name, for what an operation will make."""
        if path in self._records or path in self._coming:
            raise GCPError("alreadyExists", f"The resource '{path}' already exists", 409)
        self._coming.add(path)

    def release(self, path: str) -> None:
        self._coming.discard(path)

    def remove(self, path: str) -> None:
        self._records.pop(path, None)

    def has(self, path: str) -> bool:
        return path in self._records

    def get(self, path: str) -> Record:
        if path not in self._records:
            raise not_found(path)
        return self._records[path]

    def used(self, path: str, field: str) -> Record:
        """What a field of a request refers to."""
        if path in self._coming:
            message = f"The resource '{path}' is not ready"
            raise GCPError("resourceNotReady", message, 400)
        if path not in self._records:
            raise not_found(path) if field else invalid(field, path, "It does not exist.")
        return self._records[path]

    def of(self, parent: str, collection: str) -> list[Record]:
        """All below a parent, sorted by name."""
        prefix = f"{parent}/{collection}/"
        found = [path for path in self._records if path.startswith(prefix)]
        return [self._records[path] for path in sorted(found)]

    def everywhere(self, collection: str) -> Iterator[tuple[str, Record]]:
        """With the path of each."""
        for path, record in sorted(self._records.items()):
            if path.rsplit("/", 2)[1] == collection:
                yield path, record


def zonal(zone: str, collection: str, name: str) -> str:
    return f"projects/{PROJECT}/zones/{zone}/{collection}/{name}"


def regional(region: str, collection: str, name: str) -> str:
    return f"projects/{PROJECT}/regions/{region}/{collection}/{name}"


def overall(collection: str, name: str) -> str:
    return f"projects/{PROJECT}/global/{collection}/{name}"


def link(path: str) -> str:
    """The URL of a resource."""
    return ROOT + path


def path_of(url: str, parent: str = f"projects/{PROJECT}") -> str:
    """The path that a full or partial URL means; a name alone stays one."""
    for root in (ROOT, "https://compute.googleapis.com/compute/v1/"):
        url = url.removeprefix(root)
    if url.startswith(("zones/", "regions/", "global/")):
        return f"{parent}/{url}"
    return re.sub(rf"^projects/{NUMBER}/", f"projects/{PROJECT}/", url)


def fingerprint(value: Any) -> str:
    """Of what a record says; who changes it has to know the newest."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def check_fingerprint(given: str | None, current: str, what: str) -> None:
    if given is None:
        raise GCPError("required", f"Required field '{what}' not specified", 400)
    if given.replace("-", "+").replace("_", "/") != current:
        message = f"{what} fingerprint either invalid or resource fingerprint has changed"
        raise GCPError("conditionNotMet", message, 412, location=("If-Match", "header"))
