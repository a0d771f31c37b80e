"""A store: the few calls on object storage that all the rest is built on.

`folder` has the store that is a folder, `objects` those that obstore can open.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sojourn.core.errors import IntegrityError, NotFound
from sojourn.storage.files import keep_file
from sojourn.storage.folder import FolderStore
from sojourn.storage.objectinfo import Buffer, ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = [
    "Buffer",
    "ObjectInfo",
    "Store",
    "StoreAddress",
    "keep_file",
    "open_store",
    "read_json",
]

_FOLDER = "file://"
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class StoreAddress:
    """Where a store is: a URL and obstore's options for it. Options may be secret."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Store(Protocol):
    """Object storage. Paths are relative to the store's root and separated by `/`."""

    def get(self, path: str) -> memoryview:
        """The whole object. Absent: raises NotFound."""

    def stream(self, path: str) -> Iterator[memoryview]:
        """The whole object, in pieces of some hundred KiB as they come. Absent: raises NotFound."""

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Some (start, length) parts of an object. Absent: raises NotFound.

        A part that lies outside of the object raises IntegrityError.
        """

    def put(self, path: str, data: Buffer) -> None:
        """Write an object at once and wholly; one that is there is replaced."""

    def put_new(self, path: str, data: Buffer) -> bool:
        """Write an object if there is none; of many racing callers exactly one gets True.

        A repeat by the same caller, after an answer got lost, must carry the same bytes: it gets
        True as well.
        """

    def keep(self, paths: Sequence[str]) -> None:
        """Make sure that these objects outlast a power cut; of a folder that is not a matter of
        course. Absent: nothing to do."""

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, without moving bytes over the wire. Absent: raises NotFound."""

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        """All objects under the folder `prefix`, sorted; only those that sort after `after`."""

    def head(self, path: str) -> ObjectInfo | None:
        """Size and time of one object. Absent: None."""

    def delete(self, paths: Sequence[str]) -> None:
        """Remove objects; those that are absent are no error."""


def read_json(store: Store, path: str, parse: Callable[[Any], _Parsed]) -> _Parsed:
    """An object that holds JSON; one that is damaged raises IntegrityError."""
    data = bytes(store.get(path))
    try:
        return parse(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(
            f"{path} in the store is damaged: {error}",
            hint="Run `sojourn delete --force` to remove the task and its stored data.",
        ) from error


def open_store(address: StoreAddress) -> Store:
    """Open a store; a folder must exist."""
    if address.url.startswith(_FOLDER):
        folder = Path(address.url.removeprefix(_FOLDER))
        if not folder.is_dir():
            raise NotFound(f"Store not found: {folder} is not a folder")
        return FolderStore(folder)
    from sojourn.storage.objects import open_objects  # obstore is large, and folders need none

    return open_objects(address)
