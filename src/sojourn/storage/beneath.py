"""Folders below one that others change meanwhile: no symlink leads out of it.

A path is walked folder by folder from descriptor to descriptor, and no symlink is followed on the
way, whatever appears there while we look. So paths may also be longer than the system takes at
once. The way to the last folder stays open: what is asked for next is mostly in it or near it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.storage.files import open_folder, open_inner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Beneath", "is_elsewhere", "let_in"]

_KEPT = 16  # descriptors of the innermost folders of a way, for each thread
_ELSEWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# What a folder may be opened for that must not be read; systems without it can do what we need
# it for in another way.
_NOT_READ = getattr(os, "O_PATH", None)


class Beneath:
    """A folder, for paths relative to it. Descriptors are those of the calling thread.

    `strict`: the folder itself must not be a symlink either, for others write to the one above it.
    The folder is opened when it is first asked for, and again after `close`.
    """

    def __init__(self, root: Path | str, *, strict: bool = False) -> None:
        self._root = os.fspath(root)
        self._strict = strict
        self._of_thread = threading.local()

    def folder(self, path: str) -> int:
        """A descriptor of a folder, the root's for an empty path; good until the next call."""
        way: _Way | None = getattr(self._of_thread, "way", None)
        if way is None:
            way = self._of_thread.way = _Way(self._open())
        return way.to(path)

    def within(self, path: str) -> tuple[int, str]:
        """The descriptor of the folder that a path is in, and the path's own name there."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def walk(self) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """The paths of all folders, the root's first, and what is in each, in order.

        A folder that is something else by the time that it is entered is left out.
        """
        folders = [""]
        while folders:
            path = folders.pop()
            try:
                items = sorted(os.scandir(self.folder(path)), key=lambda item: item.name)
            except OSError as error:
                if path and is_elsewhere(error):
                    continue
                raise
            yield path, items
            prefix = f"{path}/" if path else ""
            inner = [prefix + item.name for item in items if item.is_dir(follow_symlinks=False)]
            folders.extend(reversed(inner))

    def close(self) -> None:
        """Close what this thread has open. What other threads have, closes with them."""
        self._of_thread.__dict__.clear()

    def _open(self) -> int:
        if not self._strict:
            return open_folder(self._root)
        above, name = os.path.split(os.path.abspath(self._root))
        outer = open_folder(above)
        try:
            return open_inner(outer, name)
        finally:
            os.close(outer)

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Way:
    """The way from a folder to one below it, of which the innermost folders are open."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._path: str | None = ""
        self._names: list[str] = []
        self._open: list[int] = []  # of the last of these names

    def to(self, path: str) -> int:
        """Go on to another folder; its descriptor."""
        if path != self._path:
            last, self._path = self._path, None  # until we are there
            self._go(path.split("/") if path else [], self._shared(last, path))
            self._path = path
        return self._open[-1] if self._open else self._root

    def _go(self, names: list[str], kept: int) -> None:
        if kept <= len(self._names) - len(self._open):
            kept = 0  # those that are closed are opened again, from the root on
        self._back_to(kept)
        for name in names[kept:]:
            inner = open_inner(self._open[-1] if self._open else self._root, name)
            self._open.append(inner)
            self._names.append(name)
            if len(self._open) > _KEPT:
                os.close(self._open.pop(0))

    def _shared(self, last: str | None, path: str) -> int:
        """How many folders of the way are on the way to another one, too."""
        if last and path.startswith(f"{last}/"):
            return len(self._names)
        if last and path and last.startswith(f"{path}/"):
            return path.count("/") + 1
        shared = 0
        for old, new in zip(self._names, path.split("/"), strict=False):
            if old != new:
                break
            shared += 1
        return shared

    def _back_to(self, count: int) -> None:
        """Leave all but the first so many folders, of which the last is open; or all."""
        while len(self._names) > count:
            self._names.pop()
            if self._open:
                os.close(self._open.pop())

    def __del__(self) -> None:
        self._back_to(0)
        with suppress(OSError):
            os.close(self._root)


def is_elsewhere(error: OSError) -> bool:
    """Whether an error says that there is no such path, or by now a symlink or a file on it."""
    return error.errno in _ELSEWHERE


def let_in(folder: int, name: str, more: int = 0o700) -> None:
    """Have what is in an open folder allow more, such as its owner all; symlinks are errors.

    Nothing is opened for reading: it may not be allowed.
    """
    if _NOT_READ is None:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        _refuse_symlink(mode, name)
        os.chmod(name, stat.S_IMODE(mode) | more, dir_fd=folder, follow_symlinks=False)
        return
    found = os.open(name, _NOT_READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(found).st_mode
        _refuse_symlink(mode, name)
        os.chmod(f"/proc/self/fd/{found}", stat.S_IMODE(mode) | more)
    finally:
        os.close(found)


def _refuse_symlink(mode: int, name: str) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
