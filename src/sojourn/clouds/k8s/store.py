"""The store of a task as laptops see it: what they say of it is in the Secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s.secret import SecretObjects, in_secret
from sojourn.core.errors import NotFound
from sojourn.storage import layout
from sojourn.storage.objectinfo import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.storage.store import Buffer, ObjectInfo, Store

__all__ = ["TaskStore"]


class TaskStore:
    """A store whose smallest part is in the Secret. `opened` is called when the rest is needed.

    If it raises NotFound, a creation broke off before there was any: then there is nothing in it.
    `used` tells whether anything may be in it: to look may take a pod, for which there may be no
    node.
    """

    def __init__(
        self, secret: SecretObjects, opened: Callable[[], Store], used: Callable[[], bool]
    ) -> None:
        self._secret = secret
        self._opened = opened
        self._used = used

    def _to_read(self) -> Store:
        if not self._used():
            raise NotFound("Nothing is stored yet")
        return self._opened()

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        if in_secret(path):
            return self._secret.get(path)  # a Secret is small, and only laptops write to it
        return self._to_read().get(path, most=most)

    def stream(self, path: str) -> Iterator[memoryview]:
        return iter([self.get(path)]) if in_secret(path) else self._to_read().stream(path)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        return self._to_read().get_ranges(path, ranges)

    def put(self, path: str, data: Buffer) -> None:
        if in_secret(path):
            self._secret.put(path, bytes(data))
        else:
            self._opened().put(path, data)

    def put_new(self, path: str, data: Buffer) -> bool:
        if in_secret(path):
            return self._secret.put_new(path, bytes(data))
        return self._opened().put_new(path, data)

    def keep(self, paths: Sequence[str]) -> None:
        rest = [path for path in paths if not in_secret(path)]
        if rest:
            self._opened().keep(rest)

    def copy(self, source: str, target: str) -> None:
        self._opened().copy(source, target)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        if prefix == layout.CREATORS:
            return self._secret.list(prefix, after)
        try:
            return self._to_read().list(prefix, after)
        except NotFound:
            return []

    def head(self, path: str) -> ObjectInfo | None:
        if in_secret(path):
            return self._secret.head(path)
        try:
            return self._to_read().head(path)
        except NotFound:
            return None

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            if in_secret(path):
                self._secret.delete(path)
        rest = [path for path in paths if not in_secret(path)]
        if rest:
            self._opened().delete(rest)
