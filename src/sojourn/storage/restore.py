"""Writing entries of snapshots to a folder.

Folders come first, then files, symlinks last, and the folders' own attributes at the end: so
nothing that a snapshot holds can redirect a write, and nothing that appears meanwhile can, see
`beneath`. Each file appears at once and whole, after its content was found right.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sojourn.core.errors import Conflict, IntegrityError, QuotaError
from sojourn.storage.beneath import Beneath, let_in
from sojourn.storage.digest import digest_of, hasher
from sojourn.storage.files import opened
from sojourn.storage.manifest import FILE, FOLDER, LINK, Entry, Part
from sojourn.storage.parallel import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from sojourn.core.context import Context
    from sojourn.storage.store import Store

__all__ = ["Restorer", "explained"]

_WRITERS = 4  # of small files at once: more would only fight for the interpreter's lock
# For larger pieces Linux takes larger pages, and whoever writes side by side waits for longer. On a
# virtual machine whose host has taken free memory back, large pages cost three times the transfer.
_WRITTEN_AT_ONCE = 64 << 10
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WHOLE = 4  # fetch a whole pack if more than a quarter of it is needed
# Bytes that are in memory at once, of a pack or of some of its parts: what a machine says of its
# objects is not believed. Packs and chunks have 9 MiB at most.
_AT_ONCE = 16 << 20


class _Piece(NamedTuple):
    """A small file and where it lies in its pack."""

    entry: Entry
    part: Part


class Restorer:
    """Restores entries to a folder. Their paths must have been checked by `manifest.decode`.

    `give_name` renames each file and symlink, once it is whole, from a temporary name in an open
    folder to its own: it can move away what is there by then. It gets the folder's descriptor, the
    temporary name and the path, and is called by several threads at once. `strict`: see `Beneath`.
    """

    def __init__(
        self,
        store: Store,
        root: Path,
        *,
        workers: int = 8,
        give_name: Callable[[int, str, str], None] | None = None,
        strict: bool = False,
    ) -> None:
        self._store = store
        self._root = os.fspath(root)
        self._there = Beneath(root, strict=strict)
        self._workers = workers
        self._rename = give_name or _give_name
        self._unfinished: set[str] = set()
        self._writing = threading.Semaphore(_WRITERS)

    def restore(
        self,
        ctx: Context,
        entries: Iterable[Entry],
        sizes: Mapping[str, int],
        *,
        step: str = "Downloading",
    ) -> dict[str, Entry]:
        """Write all entries; returns them with the inodes and times they have here.

        `sizes` are those of the objects. What stands in the way of a file or symlink must have
        been moved away before, or by `give_name`.
        """
        with self._there:
            return self._restore(ctx, list(entries), sizes, step)

    def _restore(
        self, ctx: Context, todo: list[Entry], sizes: Mapping[str, int], step: str
    ) -> dict[str, Entry]:
        total = sum(entry.size for entry in todo)
        done = 0

        def progress(size: int) -> None:
            nonlocal done
            done += size
            ctx.progress(step, done, total)

        for entry in todo:
            if entry.kind == FOLDER:
                self._make_folder(entry)
        try:
            with Workers(ctx, self._workers) as workers:
                self._files(todo, sizes, workers, progress)
        finally:
            for path in self._unfinished:
                with suppress(OSError):  # the folder may be gone, or be something else
                    folder, name = self._there.within(path)
                    _remove(folder, temporary_name(name))
        for entry in todo:
            if entry.kind == LINK:
                self._make_link(entry)
        folders = [entry for entry in todo if entry.kind == FOLDER]
        todo.reverse()
        here: dict[str, Entry] = {}
        while todo:  # popped one by one: if the caller released them, there are never two of each
            entry = self._as_it_is(todo.pop())
            here[entry.path] = entry
        for entry in reversed(folders):  # a folder may not let us in once it has its mode
            here[entry.path] = self._finish_folder(entry)
        return here

    def _files(
        self,
        todo: list[Entry],
        sizes: Mapping[str, int],
        workers: Workers,
        progress: Callable[[int], None],
    ) -> None:
        packs: dict[str, list[_Piece]] = defaultdict(list)
        large: list[Entry] = []
        for entry in todo:
            if entry.kind != FILE:
                continue
            if not entry.parts:
                self._write_small(entry, b"")
            elif len(entry.parts) == 1 and entry.parts[0].object and entry.size <= _AT_ONCE:
                packs[entry.parts[0].object].append(_Piece(entry, entry.parts[0]))
            else:
                large.append(entry)
        for path, pieces in packs.items():
            for some in _batches(pieces, sizes[path]):
                workers.submit(self._unpack, path, sizes[path], some, then=progress)
        for entry in large:
            self._large(entry, workers, progress)

    def _unpack(self, path: str, size: int, pieces: list[_Piece]) -> int:
        """Runs in a worker."""
        needed = sum(piece.part.length for piece in pieces)
        if needed * _WHOLE > size and size <= _AT_ONCE:
            whole = self._store.get(path, most=size)
            contents = [whole[p.part.offset : p.part.offset + p.part.length] for p in pieces]
        else:
            ranges = [(p.part.offset, p.part.length) for p in pieces]
            contents = self._store.get_ranges(path, ranges)
        with self._writing:
            for piece, content in zip(pieces, contents, strict=True):
                check_digest(piece.part, content)
                self._write_small(piece.entry, content)
        return needed

    def _write_small(self, entry: Entry, content: bytes | memoryview) -> None:
        with explained(self._at(entry.path)):
            folder, name = self._there.within(entry.path)
            temporary = temporary_name(name)
            try:
                descriptor = _create(folder, temporary, entry.mode)
                try:
                    _write_all(descriptor, content, 0)
                    # Mostly it has its mode already, and to look costs less than to set it again.
                    if os.fstat(descriptor).st_mode & 0o777 != entry.mode:
                        os.chmod(descriptor, entry.mode)
                    os.utime(descriptor, ns=(entry.mtime, entry.mtime))
                finally:
                    os.close(descriptor)
                self._rename(folder, temporary, entry.path)
            except BaseException:
                _remove(folder, temporary)
                raise

    def _large(self, entry: Entry, workers: Workers, progress: Callable[[int], None]) -> None:
        """Have the parts of a file fetched side by side; it appears when the last is written."""
        self._unfinished.add(entry.path)
        with explained(self._at(entry.path)):
            folder, name = self._there.within(entry.path)
            descriptor = _create(folder, temporary_name(name))
            try:
                os.truncate(descriptor, entry.size)
            finally:
                os.close(descriptor)
        left = len(entry.parts)

        def then(size: int) -> None:
            nonlocal left
            progress(size)
            left -= 1
            if not left:
                self._finish_large(entry)
                self._unfinished.remove(entry.path)

        start = 0
        for part in entry.parts:
            workers.submit(self._fetch, part, entry.path, start, then=then)
            start += part.length

    def _finish_large(self, entry: Entry) -> None:
        with explained(self._at(entry.path)):
            folder, name = self._there.within(entry.path)
            temporary = temporary_name(name)
            with opened(folder, temporary, _WRITE) as file:
                _finish(file, entry)
            self._rename(folder, temporary, entry.path)

    def _fetch(self, part: Part, path: str, start: int) -> int:
        """Runs in a worker."""
        if not part.object:
            return part.length
        digest = hasher()
        at = -part.offset  # where the piece lies, seen from the beginning of the part
        with explained(self._at(path)), self._opened_temporary(path) as file:
            for piece in self._store.stream(part.object):
                if at >= part.length:
                    break
                content = piece[max(0, -at) : max(0, part.length - at)]
                digest.update(content)
                _write_all(file, content, start + max(0, at))
                at += len(piece)
        if at < part.length or digest.hexdigest() != part.digest:
            raise _damaged(part)
        return part.length

    def _opened_temporary(self, path: str) -> AbstractContextManager[int]:
        folder, name = self._there.within(path)
        return opened(folder, temporary_name(name), _WRITE)

    def _make_folder(self, entry: Entry) -> None:
        target = self._at(entry.path)
        folder, name = self._there.within(entry.path)
        try:
            with explained(target):
                os.mkdir(name, 0o700, dir_fd=folder)
                # If all ends here, it stays as it is.
                os.fchmod(self._there.folder(entry.path), entry.mode | 0o700)
        except FileExistsError:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(info.st_mode):
                raise Conflict(
                    f"Could not create folder {target}: "
                    "a file or symlink with this name already exists",
                    hint="Move it elsewhere and try again.",
                ) from None
            if info.st_mode & 0o700 != 0o700:
                with explained(target):
                    let_in(folder, name)

    def _make_link(self, entry: Entry) -> None:
        with explained(self._at(entry.path)):
            folder, name = self._there.within(entry.path)
            temporary = temporary_name(name)
            _remove(folder, temporary)
            os.symlink(entry.target, temporary, dir_fd=folder)
            self._rename(folder, temporary, entry.path)

    def _finish_folder(self, entry: Entry) -> Entry:
        with explained(self._at(entry.path)):
            folder = self._there.folder(entry.path)
            _finish(folder, entry)
            return _with_traces(entry, os.fstat(folder))

    def _as_it_is(self, entry: Entry) -> Entry:
        with explained(self._at(entry.path)):
            folder, name = self._there.within(entry.path)
            return _with_traces(entry, os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"


def _batches(pieces: list[_Piece], size: int) -> Iterator[list[_Piece]]:
    """The pieces of a pack, as many together as may be in memory at once."""
    if size <= _AT_ONCE and sum(piece.part.length for piece in pieces) * _WHOLE > size:
        yield pieces  # they are all parts of the pack, which is
        return
    batch: list[_Piece] = []
    left = _AT_ONCE
    for piece in pieces:
        left -= piece.part.length
        if batch and left < 0:
            yield batch
            batch, left = [], _AT_ONCE - piece.part.length
        batch.append(piece)
    yield batch


def _give_name(folder: int, temporary: str, path: str) -> None:
    os.replace(temporary, path.rpartition("/")[2], src_dir_fd=folder, dst_dir_fd=folder)


def _finish(descriptor: int, entry: Entry) -> None:
    os.chmod(descriptor, entry.mode)
    os.utime(descriptor, ns=(entry.mtime, entry.mtime))


def _with_traces(entry: Entry, info: os.stat_result) -> Entry:
    return Entry(*entry[:7], info.st_ctime_ns, info.st_ino)


def check_digest(part: Part, content: bytes | memoryview) -> None:
    """Raise IntegrityError unless this is what the part says."""
    if len(content) != part.length or digest_of(content) != part.digest:
        raise _damaged(part)


def _damaged(part: Part) -> IntegrityError:
    return IntegrityError(
        f"{part.object} in the store is damaged: its checksum does not match",
        hint="Nothing was restored from it. Try again in case the fault was temporary.",
    )


def temporary_name(target: str) -> str:
    """Where a file is written before it gets its name; the same at every try."""
    folder, slash, name = target.rpartition("/")
    token = digest_of(os.fsencode(name))[:16]
    return f"{folder}{slash}.sojourn-{token}.part"


def _create(folder: int, temporary: str, mode: int = 0o600) -> int:
    """A new file that nobody can read who may not in the end; a former try's is removed."""
    try:
        return os.open(temporary, _CREATE, mode, dir_fd=folder)
    except FileExistsError:
        _remove(folder, temporary)
        return os.open(temporary, _CREATE, mode, dir_fd=folder)


def _write_all(descriptor: int, content: bytes | memoryview, start: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view[:_WRITTEN_AT_ONCE], start)
        start += written
        view = view[written:]


def _remove(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


class explained:  # noqa: N801 -- a class, for it is entered for every file, and quicker so
    """Turns a full disk into an error that says so; other errors get the whole path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, OSError):
            return
        error.filename = self._path  # what failed has only seen the last part of it
        if error.filename2 is not None:
            del error.filename2
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return
        raise QuotaError(
            f"Could not write {self._path}: {os.strerror(error.errno)}",
            hint="Free some disk space and try again; complete files are not downloaded again.",
        ) from error
