"""A store in a folder, with nothing but the standard library.

Paths may come from somebody else, and others may write to the folder: see `files`.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError, NotFound, QuotaError, Transient
from sojourn.storage.failures import translated, truncated, unreachable, within
from sojourn.storage.files import (
    UNFINISHED,
    keep_file,
    open_below,
    open_folder,
    opened,
    read_whole,
)
from sojourn.storage.folderlist import DEEPEST, info_of, list_folder
from sojourn.storage.objectinfo import MOST
from sojourn.storage.placing import copy_file, created, linked, remove, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.storage.objectinfo import Buffer, ObjectInfo

__all__ = ["FolderStore"]

_CONFLICT_WAITS = (0.0, 0.05, 0.1, 0.2, 0.4)  # seconds
_STREAMED_AT_ONCE = 256 << 10  # larger ones cost the allocator fresh pages, again and again
_PAGE = 4096  # bytes
_SHOWN = 200  # characters of a path that makes no sense
_OVERWRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderStore:
    """Objects are files. They are written under a hidden name and then renamed."""

    def __init__(self, folder: Path) -> None:
        self._root = os.fspath(folder)

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        with translated(path), self.reading(path) as descriptor:
            size = within(path, os.fstat(descriptor).st_size, most)
            return memoryview(read_whole(descriptor, size))

    def stream(self, path: str) -> Iterator[memoryview]:
        with translated(path), self.reading(path) as descriptor:
            while piece := os.read(descriptor, _STREAMED_AT_ONCE):
                yield memoryview(piece)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        with translated(path), self.reading(path) as descriptor:
            size = os.fstat(descriptor).st_size
            if any(not 0 <= start < size or length < 1 for start, length in ranges):
                raise truncated(path)
            return [memoryview(_part(descriptor, *wanted)) for wanted in ranges]

    def put(self, path: str, data: Buffer) -> None:
        try:
            with translated(path), self.folder_for(path) as (folder, name):
                write_file(folder, name, data)
        except QuotaError:
            if not self._overwritten(path, data):
                raise

    def put_new(self, path: str, data: Buffer) -> bool:
        for wait in _CONFLICT_WAITS:
            with translated(path), self.folder_for(path) as (folder, name):
                if created(folder, name, data):
                    return True
            # Ours, if an answer was lost and the request repeated; gone, if nobody has won yet.
            with suppress(NotFound):
                return self._is(path, data)
            time.sleep(wait)
        raise Transient(f"{path} in the store kept changing", hint="Try again.")

    def _is(self, path: str, data: Buffer) -> bool:
        try:
            return bytes(self.get(path, most=len(data))) == bytes(data)
        except IntegrityError:
            return False  # it is larger

    def keep(self, paths: Sequence[str]) -> None:
        folders: set[tuple[str, ...]] = set()
        for path in paths:
            *above, name = _parts(path)
            with suppress(NotFound), translated(path), self._folder(above) as folder:
                keep_file(name, folder)
            folders.update(tuple(above[:count]) for count in range(len(above) + 1))
        for parts in folders:
            with suppress(NotFound), translated("/".join(parts)), self._folder(parts) as folder:
                os.fsync(folder)

    def copy(self, source: str, target: str) -> None:
        *above, name = _parts(source)
        with translated(source), self._folder(above) as old, opened(old, name) as descriptor:
            self._copy(old, name, descriptor, target)

    def _copy(self, old: int, name: str, descriptor: int, target: str) -> None:
        with translated(target), self.folder_for(target) as (folder, copied):
            if not linked(old, name, folder, copied):
                copy_file(descriptor, folder, copied)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        parts = _parts(prefix) if prefix else ()
        with suppress(NotFound), translated(prefix), self._folder(parts) as folder:
            return list_folder(folder, f"{prefix}/" if prefix else "", after)
        return []

    def head(self, path: str) -> ObjectInfo | None:
        *above, name = _parts(path)
        with suppress(NotFound), translated(path), self._folder(above) as folder:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode):
                return info_of(path, info)
        return None

    def delete(self, paths: Sequence[str]) -> None:
        for above, names in _by_folder(paths).items():
            with suppress(NotFound), translated("/".join(above)), self._folder(above) as folder:
                for name in names:
                    remove(folder, name)

    def _overwritten(self, path: str, data: Buffer) -> bool:
        """Write over a small object of the same size: a full disk has room for that.

        So a lease is renewed, and tells that the store is full, when nothing new fits in. Readers
        see all of it at once, as it is one write within a page.
        """
        if len(data) > _PAGE:
            return False
        *above, name = _parts(path)
        with suppress(OSError), self._folder(above) as folder:
            descriptor = os.open(name, _OVERWRITE, dir_fd=folder)
            try:
                info = os.fstat(descriptor)
                if not stat.S_ISREG(info.st_mode) or info.st_size != len(data):
                    return False
                # One that was copied has two names, and the other one keeps its content.
                return info.st_nlink == 1 and os.pwrite(descriptor, data, 0) == len(data)
            finally:
                os.close(descriptor)
        return False

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """A descriptor of an object, which stays what it was. Absent: raises FileNotFoundError."""
        *above, name = _parts(path)
        with self._folder(above) as folder, opened(folder, name) as descriptor:
            yield descriptor

    @contextmanager
    def folder_for(self, path: str) -> Iterator[tuple[int, str]]:
        """Where to write an object: the folder is made if it is absent.

        The root never is: who follows a task that is deleted would bring it back.
        """
        *above, name = _parts(path)
        with self._folder(above, make=True) as folder:
            yield folder, name

    @contextmanager
    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        descriptor = open_below(self._opened_root(), parts, make=make)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _opened_root(self) -> int:
        try:
            return open_folder(self._root)
        except FileNotFoundError as error:
            raise NotFound(f"Store no longer exists: {self._root} not found") from error
        except NotADirectoryError as error:
            # Not the same as an empty store: somebody may have moved it for a while.
            raise unreachable("objects", f"{self._root} is not a folder") from error


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if "\0" in path or len(parts) > DEEPEST or not all(map(_is_name, parts)):
        raise IntegrityError(f"invalid path in the store: {path[:_SHOWN]!r}")
    return parts


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and not part.startswith(UNFINISHED)


def _part(descriptor: int, start: int, length: int) -> bytes:
    data = os.pread(descriptor, length, start)
    while more := os.pread(descriptor, length - len(data), start + len(data)):
        data += more  # seldom: a read is whole, but for one of 2 GiB
    return data


def _by_folder(paths: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        *above, name = _parts(path)
        found.setdefault(tuple(above), []).append(name)
    return found
