"""What the server does for each call. Whatever it sends goes out piece by piece."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

from sojourn.core.errors import Transient
from sojourn.storage.failures import translated, truncated, within
from sojourn.storage.served.frames import PIECE
from sojourn.storage.served.messages import listing_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sojourn.storage.folder import FolderStore
    from sojourn.storage.objectinfo import Buffer

__all__ = ["BULKY", "CALLS", "Reply", "pieces"]


class Reply(Protocol):
    """Where the body of an answer goes."""

    def begin(self, **sizes: Any) -> None:
        """Say how large it is, before anything else."""

    def data(self, piece: Buffer) -> None:
        """Send a piece."""


def _get(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    path = str(said["path"])
    with translated(path), store.reading(path) as descriptor:
        # A client of an older version does not say how much it takes.
        size = within(path, os.fstat(descriptor).st_size, int(said.get("most", sys.maxsize)))
        reply.begin(size=size)
        _send(reply, path, descriptor, 0, size)


def _ranges(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    path = str(said["path"])
    wanted = [(int(start), int(length)) for start, length in said["ranges"]]
    with translated(path), store.reading(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if any(not 0 <= start < size or length < 1 for start, length in wanted):
            raise truncated(path)
        parts = [(start, min(length, size - start)) for start, length in wanted]
        reply.begin(size=sum(length for _, length in parts), sizes=[length for _, length in parts])
        for start, length in parts:
            _send(reply, path, descriptor, start, length)


def _part(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    """A part of an object that is read in several calls: `tag` says if it is still the same."""
    path, start = str(said["path"]), int(said["start"])
    with translated(path), store.reading(path) as descriptor:
        info = os.fstat(descriptor)
        tag = f"{info.st_ino}-{info.st_mtime_ns}-{info.st_size}"
        if said["tag"] not in ("", tag):
            raise Transient(f"{path} in the store changed while it was read", hint="Try again.")
        length = max(0, min(int(said["length"]), info.st_size - start))
        reply.begin(size=length, tag=tag, whole=info.st_size)
        _send(reply, path, descriptor, start, length)


def _send(reply: Reply, path: str, descriptor: int, start: int, length: int) -> None:
    end = start + length
    while start < end:
        piece = os.pread(descriptor, min(PIECE, end - start), start)
        if not piece:
            raise truncated(path)
        reply.data(piece)
        start += len(piece)


def _list(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    body = listing_to(store.list(str(said["prefix"]), str(said["after"])))
    reply.begin(size=len(body))
    for piece in pieces(body):
        reply.data(piece)


def _head(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    info = store.head(str(said["path"]))
    body = listing_to([info] if info else [])
    reply.begin(size=len(body))
    reply.data(body)


def pieces(body: Buffer) -> Iterator[memoryview]:
    """A body, cut for the line."""
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield view[start : start + PIECE]


def _copy(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    store.copy(str(said["source"]), str(said["target"]))


def _keep(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    store.keep(_paths(said))


def _delete(store: FolderStore, said: dict[str, Any], reply: Reply) -> None:
    store.delete(_paths(said))


def _paths(said: dict[str, Any]) -> list[str]:
    paths: Iterable[Any] = said["paths"]
    return [str(path) for path in paths]


CALLS: dict[str, Callable[[FolderStore, dict[str, Any], Reply], None]] = {
    "get": _get,
    "ranges": _ranges,
    "part": _part,
    "list": _list,
    "head": _head,
    "copy": _copy,
    "keep": _keep,
    "delete": _delete,
}
BULKY = frozenset({"get", "ranges", "part", "copy", "keep"})  # these may take their time
