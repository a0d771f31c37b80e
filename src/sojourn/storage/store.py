"""A store: the few calls on object storage that all the rest is built on.

`folder` has the store that is a folder, `objects` those that obstore can open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.untrusted import LARGEST, UNREADABLE, parsed_bytes
from sojourn.storage.failures import damaged
from sojourn.storage.files import keep_file
from sojourn.storage.folder import FolderStore
from sojourn.storage.objectinfo import MOST, Buffer, ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = [
    "MOST",
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

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        """The whole object. Absent: raises NotFound.

        One of more than `most` bytes raises IntegrityError, and is not fetched: a machine may have
        written it.
        """

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


def read_json(
    store: Store, path: str, parse: Callable[[Any], _Parsed], *, most: int = LARGEST
) -> _Parsed:
    """An object that holds JSON; one that is damaged raises IntegrityError."""
    data = store.get(path, most=most)
    try:
        return parse(parsed_bytes(data, most=most))
    except InvalidInput as error:
        raise damaged(path, error.message) from error
    except UNREADABLE as error:
        raise damaged(path, str(error) or type(error).__name__) from error


def open_store(address: StoreAddress) -> Store:
    """Open a store; a folder must exist."""
    if address.url.startswith(_FOLDER):
        folder = Path(address.url.removeprefix(_FOLDER))
        if not folder.is_dir():
            raise NotFound(f"Store not found: {folder} is not a folder")
        return FolderStore(folder)
    from sojourn.storage.objects import open_objects  # obstore is large, and folders need none

    return open_objects(address)
