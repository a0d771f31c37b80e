"""Requests and answers as JSON, and errors by their names."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import (
    AuthError,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)
from sojourn.core.untrusted import UNREADABLE, decodable, decoded, parsed_bytes
from sojourn.storage.failures import damaged
from sojourn.storage.objectinfo import ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "batches",
    "error_from",
    "error_to",
    "listing_from",
    "listing_to",
    "text_from",
    "text_to",
]

_ERRORS = {kind.__name__: kind for kind in (AuthError, IntegrityError, NotFound, QuotaError)}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_REQUEST = 64 << 10  # bytes of paths in one request
_HOUR = 3600.0  # seconds
_LONGEST = 128 << 10  # bytes of one, and of what an answer says of itself


def text_to(value: Any) -> bytes:
    """JSON, as it travels."""
    return json.dumps(value, separators=(",", ":")).encode()


def text_from(data: bytes) -> dict[str, Any]:
    """What a frame says; raises ValueError."""
    value = parsed_bytes(data, most=_LONGEST)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def error_to(error: Exception) -> bytes:
    """An error, by its name."""
    if isinstance(error, Transient):
        pause = error.retry_after
        text = {"error": "Transient", "message": error.message, "hint": error.hint, "pause": pause}
    elif isinstance(error, SojournError):
        text = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    else:
        text = {"error": "Transient", "message": f"{type(error).__name__}: {error}", "hint": ""}
    return text_to({key: _short(value) for key, value in text.items()})


def error_from(said: dict[str, Any]) -> SojournError:
    """The same error again; a name that is unknown here may be worth another try."""
    message, hint = str(said.get("message")), str(said.get("hint") or "")
    kind = _ERRORS.get(str(said.get("error")))
    if kind is not None:
        return kind(message, hint=hint)
    pause = said.get("pause")
    retry_after = float(pause) if isinstance(pause, int | float) and 0 <= pause < _HOUR else 1.0
    return Transient(message, hint=hint, retry_after=retry_after)


def _short(value: Any) -> Any:
    return value[:4096] if isinstance(value, str) else value


def listing_to(found: Sequence[ObjectInfo]) -> bytes:
    """A listing as one body."""
    return text_to([[path, size, (at - _EPOCH) // _MICROSECOND] for path, size, at in found])


def listing_from(data: bytes | bytearray | memoryview) -> list[ObjectInfo]:
    """The listing again; raises IntegrityError."""
    try:
        return [_object(*row) for row in json.loads(decoded(data))]
    except (*UNREADABLE, MemoryError) as error:
        raise damaged("The list of objects", error) from error


def _object(path: object, size: object, at: object) -> ObjectInfo:
    if type(path) is not str or type(size) is not int or type(at) is not int:
        raise TypeError("an object has no name, size or time")
    return ObjectInfo(decodable(path), size, _EPOCH + timedelta(microseconds=at))


def batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """Paths in as many parts as fit into a frame each."""
    batch: list[str] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += 6 * len(path) + 3  # at worst, in JSON
        if size > _REQUEST:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
