"""Stores that obstore can open: buckets.

obstore's exceptions stop here. Every call is retried and has a timeout, both by obstore itself.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import from_url

from sojourn.core.errors import (
    AuthError,
    IntegrityError,
    InvalidInput,
    NotFound,
    SojournError,
    Transient,
)
from sojourn.storage.failures import absent, denied, full, truncated, unreachable, within
from sojourn.storage.objectinfo import MOST, ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from obstore.store import ObjectStore

    from sojourn.storage.objectinfo import Buffer
    from sojourn.storage.store import StoreAddress

__all__ = ["ObstoreStore", "open_objects"]

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
_STATUS = re.compile(r"(?:status code|\(code): (?P<status>\d{3})")
_STREAMED_AT_ONCE = 256 << 10  # larger ones cost the allocator fresh pages, again and again
# Options of obstore's HTTP client, which panics if it finds them among those of the store.
_OF_CLIENT = frozenset(
    (
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "timeout",
        "user_agent",
    )
)
_FLAGS = {"true": True, "false": False}


def open_objects(address: StoreAddress) -> ObstoreStore:
    """Open a bucket, or a part of one."""
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
    for key, value in _sorted(address.options).items():
        options[key] = options[key] | value if isinstance(options.get(key), dict) else value
    with _translated(address.url):
        return from_url(address.url, **options)


def _sorted(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options whose values are all texts, as users write them; those of the client have a place of
    their own. An endpoint that says http means it."""
    options = {key: value for key, value in given.items() if key not in _OF_CLIENT}
    named = sorted(given.keys() & _OF_CLIENT)
    client = {key: _FLAGS.get(str(given[key]).lower(), given[key]) for key in named}
    if str(given.get("endpoint", "")).startswith("http://"):
        client.setdefault("allow_http", True)
    if client:
        options["client_options"] = {**client, **given.get("client_options", {})}
    return options


class ObstoreStore:
    """A store on obstore; `patient` opens the same for large bodies, if they need another one."""

    def __init__(
        self, backend: ObjectStore, patient: Callable[[], ObjectStore] | None = None
    ) -> None:
        self._backend = backend
        self._open_patient = patient
        self._patient: ObjectStore | None = None
        self._opening = threading.Lock()

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        with self._there(path):
            found = obstore.get(self._backend, path)  # its body is still on the way
            within(path, found.meta["size"], most)
            return memoryview(found.bytes())

    def stream(self, path: str) -> Iterator[memoryview]:
        with self._there(path):
            for piece in obstore.get(self._backend, path).stream(_STREAMED_AT_ONCE):
                yield memoryview(piece)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        with self._there(path):
            parts = obstore.get_ranges(
                self._backend,
                path,
                starts=[start for start, _ in ranges],
                lengths=[length for _, length in ranges],
            )
            return [memoryview(part) for part in parts]

    def put(self, path: str, data: Buffer) -> None:
        with _translated(path):
            obstore.put(self._backend_for(data), path, data, use_multipart=False)

    def put_new(self, path: str, data: Buffer) -> bool:
        for wait in _CONFLICT_WAITS:
            if self._created(path, data):
                return True
            try:
                # Ours, if an answer was lost and the request repeated below us.
                return self._is(path, data)
            except NotFound:
                # S3 refuses also while somebody else is about to write or delete it, and obstore
                # makes no difference: nobody has won yet.
                time.sleep(wait)
        raise Transient(
            f"{path} in the store kept changing",
            hint="Try again.",
        )

    def _is(self, path: str, data: Buffer) -> bool:
        try:
            return bytes(self.get(path, most=len(data))) == bytes(data)
        except IntegrityError:
            return False  # it is larger

    def _created(self, path: str, data: Buffer) -> bool:
        with _translated(path):
            try:
                backend = self._backend_for(data)
                obstore.put(backend, path, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

    def keep(self, paths: Sequence[str]) -> None:
        """What a bucket has taken, it keeps."""

    def _backend_for(self, data: Buffer) -> ObjectStore:
        """Who puts this; the patient one is opened when it is first needed."""
        if len(data) <= _LARGE or self._open_patient is None:
            return self._backend
        with self._opening:
            if self._patient is None:
                self._patient = self._open_patient()
            return self._patient

    def copy(self, source: str, target: str) -> None:
        with self._there(source):
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
            with self._there(path):
                item = obstore.head(self._backend, path)
        except NotFound:
            return None
        return ObjectInfo(path, item["size"], item["last_modified"])

    @contextmanager
    def _there(self, path: str) -> Iterator[None]:
        """S3 and Google Cloud deny access to what is not there, except to those who may list the
        whole bucket: an object that is in no list of its folder is absent."""
        try:
            with _translated(path):
                yield
        except AuthError as error:
            if self._is_missing(path):
                raise absent(path) from error
            raise

    def _is_missing(self, path: str) -> bool:
        """Whether its folder can be listed and has no such object."""
        folder = path.rpartition("/")[0]
        if not folder:
            return False
        with suppress(SojournError), _translated(path):
            pages = obstore.list(self._backend, folder, offset=path[:-1], chunk_size=1)
            return not any(item["path"] == path for item in next(iter(pages), ()))
        return False

    def delete(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            self._delete(paths[start : start + _DELETED_AT_ONCE])

    def _delete(self, paths: Sequence[str]) -> None:
        try:
            with _translated(paths[0]):
                obstore.delete(self._backend, paths)
        except NotFound:
            # Some complain of the first absent object and leave the rest.
            for path in paths:
                try:
                    with _translated(path):
                        obstore.delete(self._backend, path)
                except NotFound:
                    continue


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
    if isinstance(error, UnknownConfigurationKeyError):
        return InvalidInput("storage.container_opts", _first_line(error))
    found = _STATUS.search(text)  # a listing that is refused has no exception of its own
    status = found["status"] if found else ""
    if isinstance(error, FileNotFoundError | NotFoundError) or status == "404":
        return absent(path)
    if isinstance(
        error, PermissionDeniedError | PermissionError | UnauthenticatedError
    ) or status in ("401", "403"):
        return denied(path, _first_line(error))
    if status == "416" or _OUTSIDE.search(text):
        return truncated(path)
    if "No space left" in text:
        return full(path)
    return unreachable(path, _first_line(error))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
