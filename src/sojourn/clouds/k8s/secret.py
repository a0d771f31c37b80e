"""What laptops say of a task, as keys of its Secret: nothing of it is within reach of a machine."""

from __future__ import annotations

import base64
import json
import random
import time
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sojourn.clouds.k8s.on_machine.packing import packed, unpacked
from sojourn.core.errors import Conflict, InvalidInput, NotFound, Transient
from sojourn.core.gang import file_size
from sojourn.storage import layout
from sojourn.storage.data import task_text
from sojourn.storage.store import ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.kube.api import Api, Object

__all__ = ["SecretObjects", "check_size", "in_secret"]

_TRIES = 20
_WRITTEN = "sojourn/written"  # when which key was, by the clock of whoever did
_LIMIT = 1 << 20  # bytes of a Secret, as Kubernetes has it


def in_secret(path: str) -> bool:
    """Whether an object of the store is in the Secret instead."""
    return path in (layout.TASK, layout.ENVIRONMENT) or path.startswith(f"{layout.CREATORS}/")


def check_size(task: Task) -> None:
    """Refuse what would not fit, naming what takes the most."""
    environment = sum(file_size(name) + file_size(v) for name, v in task.environment.items())
    if len(packed(task_text(task))) + environment <= _LIMIT - 16384:
        return
    sizes = {
        "script": file_size(task.script),
        "arguments": sum(map(file_size, task.arguments)),
        "environment": environment,
        "files": sum(map(file_size, task.files.values())),
    }
    field = max(sizes, key=lambda name: sizes[name])
    raise InvalidInput(
        field,
        f"must be smaller: {', '.join(list(sizes)[:-1])} and files have {sum(sizes.values()):,} "
        "bytes in all, and Kubernetes takes 1 MiB; move data to files in the workdir",
    )


class SecretObjects:
    """The few objects of a store that are keys of a Secret."""

    def __init__(self, api: Api, id: TaskId) -> None:
        self._api = api
        self._id = id

    def get(self, path: str) -> memoryview:
        found = self._secret().get("data") or {}
        if _key(path) not in found:
            raise NotFound(f"{path} not found in Secret {self._id}")
        return memoryview(_unpacked(path, base64.b64decode(found[_key(path)])))

    def put(self, path: str, data: bytes) -> None:
        self._change(lambda secret: _write(secret, path, data))

    def put_new(self, path: str, data: bytes) -> bool:
        won = False

        def write(secret: Object) -> None:
            nonlocal won
            before = (secret.get("data") or {}).get(_key(path))
            won = before is None or _unpacked(path, base64.b64decode(before)) == data
            if before is None:
                _write(secret, path, data)

        self._change(write)
        return won

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        secret = self._secret()
        paths = sorted(_path(key) for key in secret.get("data") or {})
        return [
            _info(secret, path) for path in paths if path.startswith(f"{prefix}/") and path > after
        ]

    def head(self, path: str) -> ObjectInfo | None:
        secret = self._secret()
        return _info(secret, path) if _key(path) in (secret.get("data") or {}) else None

    def last_written(self) -> datetime:
        """When a laptop last wrote any of them, by its own clock."""
        secret = self._secret()
        return max(_info(secret, _path(key)).modified for key in secret["data"])

    def delete(self, path: str) -> None:
        """Absent, with all the task or without: nothing to do."""
        with suppress(NotFound):
            self._change(lambda secret: _remove(secret, path))

    def _secret(self) -> Object:
        try:
            return self._api.get("Secret", str(self._id))
        except NotFound as error:
            raise NotFound.task(self._id) from error

    def _change(self, write: Callable[[Object], object]) -> None:
        """Read, change and write; once more if somebody else was faster."""
        for number in range(_TRIES):
            time.sleep(number * random.uniform(0.005, 0.02))  # noqa: S311 -- not at the same time
            secret = self._secret()
            before = json.dumps(secret, sort_keys=True)
            write(secret)
            if json.dumps(secret, sort_keys=True) == before:
                return
            try:
                self._api.replace("Secret", secret)
            except Conflict:
                continue
            return
        raise Transient(f"Secret {self._id} kept changing", hint="Try again.")


def _unpacked(path: str, kept: bytes) -> bytes:
    return unpacked(kept) if path == layout.TASK else kept


def _key(path: str) -> str:
    return path.replace("/", "..")


def _path(key: str) -> str:
    return key.replace("..", "/")


def _write(secret: Object, path: str, data: bytes) -> None:
    secret.setdefault("data", {})
    secret["data"] = secret["data"] or {}
    kept = packed(data) if path == layout.TASK else data
    secret["data"][_key(path)] = base64.b64encode(kept).decode()
    written = _written(secret)
    written[_key(path)] = datetime.now(timezone.utc).isoformat()
    _tell(secret, written)


def _remove(secret: Object, path: str) -> None:
    (secret.get("data") or {}).pop(_key(path), None)
    written = _written(secret)
    if written.pop(_key(path), None):
        _tell(secret, written)


def _written(secret: Object) -> dict[str, str]:
    return dict(json.loads((secret["metadata"].get("annotations") or {}).get(_WRITTEN) or "{}"))


def _tell(secret: Object, written: dict[str, str]) -> None:
    annotations = secret["metadata"].get("annotations") or {}
    annotations[_WRITTEN] = json.dumps(written, sort_keys=True)
    secret["metadata"]["annotations"] = annotations


def _info(secret: Object, path: str) -> ObjectInfo:
    written = _written(secret)
    made = secret["metadata"]["creationTimestamp"].replace("Z", "+00:00")
    when = datetime.fromisoformat(written.get(_key(path), made))
    return ObjectInfo(path, len(base64.b64decode(secret["data"][_key(path)])), when)
