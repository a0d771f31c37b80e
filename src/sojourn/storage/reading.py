"""Reading files into packs and chunks, and uploading those that the store does not have.

A file that changes while it is read is taken again. A file whose last change is so young that
another one might carry the same time is left to cool first: only so its time can be trusted, now
and at the next scan.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sojourn.storage.beneath import Beneath, is_elsewhere
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import FILE, Entry, Part
from sojourn.storage.scan import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.storage.parallel import Workers
    from sojourn.storage.store import Buffer, Store

__all__ = ["CHUNK", "SMALL", "Reader", "Readings", "Upload"]

SMALL = 1 << 20  # files below this are packed together
CHUNK = 8 << 20  # larger ones are cut into chunks of this
PACK = 8 << 20  # larger ones would take memory and start the upload later
_TRIES = 6
_FIRST_PAUSE = 0.025  # seconds before the second try; doubled for each further one
_COOL = 20_000_000  # ns: clocks of file systems tick every 4 ms, or every 10
_COOL_COARSE = 2_000_000_000  # ns: those that count whole seconds
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_HOLE = ""


class Upload:
    """The objects of one line: which the store has, and putting those that it has not.

    Used by the workers side by side: its dictionaries only grow while they work, and two that
    upload the same content at once do no harm.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._listed = False
        self._usable: dict[str, str] = {}  # digest -> object, of this line or of its base
        self.stored: dict[str, int] = {}  # all objects of this line, used or not
        self.small: dict[str, Part] = {}  # digest of a small file -> where it lies

    def remember(self, objects: Iterable[str], small: Iterable[Part]) -> None:
        """Tell what the last snapshot uses; what an interrupted upload left is found here."""
        if not self._listed:
            found = self._store.list(self._prefix)
            self.stored.update((item.path, item.size) for item in found)
            self._listed = True
        self._usable = {path.rpartition("/")[2]: path for path in (*self.stored, *objects)}
        self.small = {part.digest: part for part in small}

    def store(self, data: Buffer) -> Part:
        """Make sure that these bytes are an object."""
        digest = digest_of(data)
        path = self._usable.get(digest)
        # After a power cut, a folder may have the name of an object and not all of its bytes.
        if path is None or self.stored.get(path, len(data)) != len(data):
            path = f"{self._prefix}/{digest}"
            with self._listed_again_on_error():
                self._store.put(path, data)
            self.stored[path] = len(data)
            self._usable[digest] = path
        return Part(path, 0, len(data), digest)

    def drop(self, paths: list[str]) -> None:
        """Remove objects that no snapshot uses."""
        for path in paths:
            del self.stored[path]
        with self._listed_again_on_error():
            self._store.delete(paths)

    @contextmanager
    def _listed_again_on_error(self) -> Iterator[None]:
        """A call that failed may have done its work all the same, wholly or in part."""
        try:
            yield
        except BaseException:
            self._listed = False
            raise


@dataclass
class Readings:
    """What came of reading: complete entries, and the paths that gave none."""

    entries: dict[str, Entry] = field(default_factory=dict)
    vanished: list[str] = field(default_factory=list)
    restless: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


class Reader:
    """Reads and uploads the files of one snapshot. `strict`: see `Beneath`."""

    def __init__(
        self, ctx: Context, root: Path, upload: Upload, workers: Workers, *, strict: bool = False
    ) -> None:
        self._ctx = ctx
        self._there = Beneath(root, strict=strict)
        self._upload = upload
        self._workers = workers
        self._readings = Readings()
        self._again: list[str] = []
        self._pack = _Pack()
        self._packs = 0  # on their way
        self._open: set[int] = set()

    def read(self, todo: Iterable[Entry], progress: Callable[[int], None]) -> Readings:
        """Read these files; `progress` is told how many bytes are read and stored."""
        paths = [entry.path for entry in todo]
        self._progress = progress
        try:
            for attempt in range(_TRIES):
                self._heat = 0.0
                with self._there:
                    for path in paths:
                        self._read(path)
                self._close_pack()
                self._workers.drain()
                paths, self._again = self._again, []
                if not paths or attempt == _TRIES - 1:
                    break
                self._ctx.sleep(max(_FIRST_PAUSE * 2**attempt, self._heat))
        finally:
            self._workers.settle()
            for descriptor in self._open:
                os.close(descriptor)
        self._readings.restless = paths
        return self._readings

    def _read(self, path: str) -> None:
        try:
            folder, name = self._there.within(path)
            descriptor = os.open(name, _OPEN, dir_fd=folder)
        except OSError as error:
            if is_elsewhere(error):  # gone, or something else took its place
                self._readings.vanished.append(path)
            else:
                self._readings.unreadable[path] = os.strerror(error.errno or 0)
            return
        self._open.add(descriptor)
        entry = entry_of(path, os.fstat(descriptor))
        if entry is None or entry.kind != FILE:
            self._readings.vanished.append(path)
        elif heat := _heat(entry):
            self._heat = max(self._heat, heat)
            self._again.append(path)
        elif entry.size >= SMALL:
            self._read_large(entry, descriptor)
            return  # closed when its last chunk is stored
        else:
            try:
                self._read_small(entry, descriptor)
            except OSError as error:
                self._readings.unreadable[path] = os.strerror(error.errno or 0)
        self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self._open.remove(descriptor)
        os.close(descriptor)

    def _read_small(self, entry: Entry, descriptor: int) -> None:
        data = os.read(descriptor, entry.size + 1) if entry.size else b""  # one more: it may grow
        if len(data) != entry.size or _changed(entry, descriptor):
            self._again.append(entry.path)
            return
        if not data:
            self._readings.entries[entry.path] = entry
            return
        digest = digest_of(data)
        stored = self._upload.small.get(digest)
        if stored is not None:
            self._readings.entries[entry.path] = entry._replace(parts=(stored,))
            self._progress(entry.size)
            return
        self._pack.add(entry, data, digest)
        if len(self._pack.data) >= PACK:
            self._close_pack()

    def _close_pack(self) -> None:
        pack, self._pack = self._pack, _Pack()
        if not pack.members:
            return

        # Chunks are read by the workers, but packs wait with all their bytes: few at a time.
        while self._packs and self._packs >= self._workers.count // 2:
            self._workers.collect()
        self._packs += 1

        def then(whole: Part) -> None:
            self._packs -= 1
            for digest, member in pack.members.items():
                size = member.entries[0].size
                part = Part(whole.object, member.offset, size, digest)
                self._upload.small[digest] = part
                for entry in member.entries:
                    self._readings.entries[entry.path] = entry._replace(parts=(part,))
                    self._progress(size)

        self._workers.submit(self._upload.store, pack.data, then=then)

    def _read_large(self, entry: Entry, descriptor: int) -> None:
        parts: dict[int, Part | None] = {}
        count = -(-entry.size // CHUNK)

        def then(result: tuple[int, Part | None]) -> None:
            number, part = result
            parts[number] = part
            self._progress(part.length if part else 0)
            if len(parts) < count:
                return
            whole = tuple(part for _, part in sorted(parts.items()) if part is not None)
            if len(whole) < count or _changed(entry, descriptor):
                self._again.append(entry.path)
            else:
                self._readings.entries[entry.path] = entry._replace(parts=whole)
            self._close(descriptor)

        for number in range(count):
            self._workers.submit(self._store_chunk, entry, descriptor, number, then=then)

    def _store_chunk(self, entry: Entry, descriptor: int, number: int) -> tuple[int, Part | None]:
        """Runs in a worker. None: the file is shorter by now, or cannot be read."""
        start = number * CHUNK
        length = min(CHUNK, entry.size - start)
        if _is_hole(descriptor, start, length):
            return number, Part(_HOLE, 0, length, "")
        try:
            data = os.pread(descriptor, length, start)
        except OSError:
            return number, None
        if len(data) != length:
            return number, None
        if not any(data[:64]) and data == bytes(length):
            return number, Part(_HOLE, 0, length, "")
        return number, self._upload.store(data)


class _Member(NamedTuple):
    offset: int
    entries: list[Entry]  # more than one if they have the same content


class _Pack:
    """Small files on their way to become one object."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.members: dict[str, _Member] = {}

    def add(self, entry: Entry, data: bytes, digest: str) -> None:
        member = self.members.get(digest)
        if member:
            member.entries.append(entry)
        else:
            self.members[digest] = _Member(len(self.data), [entry])
            self.data += data


def _changed(entry: Entry, descriptor: int) -> bool:
    info = os.fstat(descriptor)
    now = (info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return (entry.size, entry.mtime, entry.ctime) != now


def _heat(entry: Entry) -> float:
    """Seconds until its time can be trusted; 0 if it is cool, or from the future."""
    cool = _COOL_COARSE if entry.ctime % 1_000_000_000 == 0 else _COOL
    age = time.time_ns() - entry.ctime
    return (cool - age) / 1e9 if 0 <= age < cool else 0.0


def _is_hole(descriptor: int, start: int, length: int) -> bool:
    try:
        return os.lseek(descriptor, start, os.SEEK_DATA) >= start + length
    except OSError as error:
        return error.errno == errno.ENXIO  # no data from here to the end of the file
