"""A store: the few calls on object storage that all the rest is built on.

obstore's exceptions stop here. Every call is retried and has a timeout, both by obstore itself.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, from_url

from sojourn.core.errors import (
    AuthError,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from obstore.store import ObjectStore

__all__ = [
    "ObjectInfo",
    "ObstoreStore",
    "Store",
    "StoreAddress",
    "keep_file",
    "open_store",
    "read_json",
]

_RETRY_FOR = timedelta(seconds=120)
_REQUEST_TIMEOUT = "60s"  # for all of a request, its body too
# A large body has to share a slow line with those of the other workers.
_LARGE = 256 << 10
_LARGE_RETRY_FOR = timedelta(minutes=30)
_LARGE_TIMEOUT = "5m"
_CONNECT_TIMEOUT = "10s"  # a store that is not there is no slow line
_CONFLICT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds
_DELETED_AT_ONCE = 500
_OUTSIDE = re.compile(r"range was invalid|Invalid range")
_STATUS = re.compile(r"status code: (?P<status>\d{3})")
_PAGE = 4096  # bytes
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STREAMED_AT_ONCE = 256 << 10  # larger ones cost the allocator fresh pages, again and again

Buffer = bytes | bytearray | memoryview
_Parsed = TypeVar("_Parsed")


class ObjectInfo(NamedTuple):
    """One object in a listing; `modified` is by the store's own clock."""

    path: str
    size: int
    modified: datetime


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
    if address.url.startswith("file://"):
        folder = Path(address.url.removeprefix("file://"))
        if not folder.is_dir():
            raise NotFound(f"Store not found: {folder} is not a folder")
        return ObstoreStore(LocalStore(folder), folder=folder)
    return ObstoreStore(
        _opened(address, {"timeout": _REQUEST_TIMEOUT}, _RETRY_FOR),
        lambda: _opened(
            address,
            {"timeout": _LARGE_TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT},
            _LARGE_RETRY_FOR,
        ),
    )


def _opened(address: StoreAddress, client: dict[str, str], retry_for: timedelta) -> ObjectStore:
    """A client; what the address itself says of it counts."""
    options: dict[str, Any] = {
        "client_options": client,
        "retry_config": {"retry_timeout": retry_for},
    }
    for key, value in address.options.items():
        options[key] = options[key] | value if isinstance(options.get(key), dict) else value
    with _translated(address.url):
        return from_url(address.url, **options)


class ObstoreStore:
    """A store on obstore; `patient` opens the same for large bodies, if they need another one."""

    def __init__(
        self,
        backend: ObjectStore,
        patient: Callable[[], ObjectStore] | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        self._backend = backend
        self._folder = folder
        self._open_patient = patient
        self._patient: ObjectStore | None = None
        self._opening = threading.Lock()

    def get(self, path: str) -> memoryview:
        with _translated(path):
            return memoryview(obstore.get(self._backend, path).bytes())

    def stream(self, path: str) -> Iterator[memoryview]:
        with _translated(path):
            for piece in obstore.get(self._backend, path).stream(_STREAMED_AT_ONCE):
                yield memoryview(piece)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        with _translated(path):
            parts = obstore.get_ranges(
                self._backend,
                path,
                starts=[start for start, _ in ranges],
                lengths=[length for _, length in ranges],
            )
            return [memoryview(part) for part in parts]

    def put(self, path: str, data: Buffer) -> None:
        try:
            with _translated(path):
                obstore.put(self._backend_for(data), path, data, use_multipart=False)
        except QuotaError:
            if self._folder is None or not _rewritten(self._folder / path, data):
                raise

    def put_new(self, path: str, data: Buffer) -> bool:
        for wait in _CONFLICT_WAITS:
            if self._created(path, data):
                return True
            try:
                # Ours, if an answer was lost and the request repeated below us.
                return bytes(self.get(path)) == bytes(data)
            except NotFound:
                # S3 refuses also while somebody else is about to write or delete it, and obstore
                # makes no difference: nobody has won yet.
                time.sleep(wait)
        raise Transient(
            f"{path} in the store kept changing",
            hint="Try again.",
        )

    def _created(self, path: str, data: Buffer) -> bool:
        with _translated(path):
            try:
                backend = self._backend_for(data)
                obstore.put(backend, path, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

    def keep(self, paths: Sequence[str]) -> None:
        if self._folder is None:
            return
        folders: set[Path] = set()
        for path in paths:
            with _translated(path):
                keep_file(self._folder / path)
            folders.update(self._folder / parent for parent in PurePosixPath(path).parents)
        for folder in folders:
            with _translated(str(folder)):
                keep_file(folder)

    def _backend_for(self, data: Buffer) -> ObjectStore:
        """Who puts this; the patient one is opened when it is first needed."""
        if self._folder is not None and not self._folder.is_dir():
            # Writing would make it anew: who follows a task that is deleted would bring it back.
            raise NotFound(f"Store no longer exists: {self._folder} is not a folder")
        if len(data) <= _LARGE or self._open_patient is None:
            return self._backend
        with self._opening:
            if self._patient is None:
                self._patient = self._open_patient()
            return self._patient

    def copy(self, source: str, target: str) -> None:
        with _translated(source):
            obstore.copy(self._backend, source, target)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        found: list[ObjectInfo] = []
        with _translated(prefix):
            for page in obstore.list(self._backend, prefix or None, offset=after or None):
                found.extend(
                    ObjectInfo(item["path"], item["size"], item["last_modified"]) for item in page
                )
        return sorted(found)

    def head(self, path: str) -> ObjectInfo | None:
        try:
            with _translated(path):
                if self._folder is not None:
                    return _look(self._folder, path)
                item = obstore.head(self._backend, path)
        except NotFound:
            return None
        return ObjectInfo(path, item["size"], item["last_modified"])

    def delete(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            self._delete(paths[start : start + _DELETED_AT_ONCE])

    def _delete(self, paths: Sequence[str]) -> None:
        try:
            with _translated(paths[0]):
                obstore.delete(self._backend, paths)
        except NotFound:
            # A folder complains of the first absent object and leaves the rest.
            for path in paths:
                try:
                    with _translated(path):
                        obstore.delete(self._backend, path)
                except NotFound:
                    continue


def _look(folder: Path, path: str) -> ObjectInfo | None:
    """The same as obstore's, for a fraction of the time: agents look several times a second."""
    info = os.stat(f"{folder}/{path}")
    if not stat.S_ISREG(info.st_mode):
        return None
    modified = _EPOCH + timedelta(microseconds=info.st_mtime_ns // 1000)
    return ObjectInfo(path, info.st_size, modified)


def _rewritten(path: Path, data: Buffer) -> bool:
    """Write over a small object of the same size: a full disk has room for that.

    So a lease is renewed, and tells that the store is full, when nothing new fits in. Readers see
    all of it at once, as it is one write within a page.
    """
    if len(data) > _PAGE:
        return False
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_size != len(data):
            return False
        return os.pwrite(descriptor, data, 0) == len(data)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def keep_file(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk. Absent: nothing to do."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # whatever it is by now
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except AlreadyExistsError:
        raise
    except (BaseError, OSError) as error:
        raise _ours(path, error) from error


def _ours(path: str, error: Exception) -> SojournError:
    text = str(error)
    found = _STATUS.search(text)  # a listing that is refused has no exception of its own
    status = found["status"] if found else ""
    if (
        isinstance(error, FileNotFoundError | NotFoundError)
        or status == "404"
        or "Not a directory" in text  # of a folder: below an object there is nothing
    ):
        return NotFound(f"{path or 'Object'} not found in the store")
    if isinstance(
        error, PermissionDeniedError | PermissionError | UnauthenticatedError
    ) or status in ("401", "403"):
        return AuthError(
            f"The store denied access to {path}: {_first_line(error)}",
            hint="Check the credentials and their permissions for this store.",
        )
    if status == "416" or _OUTSIDE.search(text):
        return IntegrityError(
            f"{path} in the store is damaged: it is truncated",
            hint="Nothing was restored from it.",
        )
    if "No space left" in text or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT):
        return QuotaError(
            f"No space left in the store for {path}",
            hint="Free some disk space, or choose another disk for the store.",
        )
    return Transient(
        f"Could not access {path} in the store: {_first_line(error)}",
        hint="Check that the store is reachable and try again.",
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
