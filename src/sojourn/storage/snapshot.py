"""Taking snapshots: a folder becomes packs, chunks and, last of all, a manifest.

A line of snapshots is a folder of the store that one writer at a time writes to. Its objects are
named by the hash of their content, so that nothing is uploaded twice and an interrupted upload
resumes; a snapshot exists from the moment its manifest is written, in one conditional put.

A manifest refers to objects of its own line and of its base (the workdir that was pushed, which
is never swept), and to no others: what a former attempt stored is first copied within the store.
So no sweeper can take away what another writer counts on, however late that one is.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from sojourn.core.above import FromAbove
from sojourn.core.errors import Conflict, NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.manifest import FILE, Entry, Manifest, Part, encode, read_manifest
from sojourn.storage.parallel import Workers
from sojourn.storage.reading import SMALL, Reader, Readings, Upload
from sojourn.storage.scan import Skipped, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.filters import Filters
    from sojourn.core.interfaces import Found, Ignore
    from sojourn.storage.store import Store

__all__ = ["SnapshotWriter", "newest"]

_KEPT = 2  # the newest, and the one that a reader may still be at
_WASTE = 4  # a pack of which less than a quarter is in use is packed anew
_TINY_PACKS = 32  # and so are tiny packs when there are more than this
_SETTLED = 45_000_000_000  # ns: after 35 s Linux has written what was mapped, and marks it anew


def newest(store: Store, line: str) -> tuple[int, Manifest] | None:
    """The last snapshot of a line and its number; None if there is none."""
    for _ in range(10):
        listed = (item.path for item in store.list(layout.snapshots_prefix(line)))
        found = max(
            ((of[1], path) for path in listed if (of := layout.snapshot_of(path))), default=None
        )
        if not found:
            return None
        try:
            return found[0], read_manifest(store, found[1])
        except NotFound:
            continue  # swept meanwhile: there is a newer one
    raise Transient(
        f"The snapshots of {line} kept changing while they were being read", hint="Try again."
    )


class SnapshotWriter:
    """The one writer of a line; remembers the last snapshot, so that the next one costs little.

    `begin` tells it what the folder held when it started: a snapshot that was restored there, or
    the newest of the line itself. `strict`: of the folder, see `Beneath`.
    """

    def __init__(
        self,
        store: Store,
        line: str,
        *,
        base: str = "",
        workers: int = 8,
        strict: bool = False,
    ) -> None:
        self._store = store
        self._strict = strict
        self._line = line
        self._base = base or line
        self._workers = workers
        self._last = Manifest()
        self._begun = False
        self._number = 0
        self._pending: Manifest | None = None  # one on its way
        self._written: dict[int, frozenset[str]] = {}
        self._young: set[str] = set()  # read so soon after their change that it may not be all
        self._kept: set[str] = set()  # objects that outlast a power cut
        self._upload = Upload(store, layout.objects_prefix(line))

    def begin(self, start: Manifest, number: int = 0) -> None:
        """Go on from a snapshot; `number` is its number if it is of this very line."""
        self._last = start
        self._begun = True
        self._number = number
        self._pending = None
        self._written = {number: frozenset(start.objects)} if number else {}
        self._young = set()
        self._kept = set(start.objects)
        self._upload = Upload(self._store, layout.objects_prefix(self._line))

    def take(
        self,
        ctx: Context,
        root: Path,
        filters: Filters,
        *,
        ignore: Ignore | None = None,
        skipped: Skipped,
        step: str = "Uploading",
        first: Callable[[], object] | None = None,
        last: bool = False,
        always: bool = False,
        stripped: Callable[[str], None] | None = None,
        found: Found | None = None,
    ) -> bool:
        """Store the folder as it is now; False if it is as it was in the last snapshot.

        `first` is called before a new snapshot comes into being. `last`: nobody writes there any
        more. `always`: a line without any snapshot gets one, changed or not. `stripped`: see
        `scan`. `found` is told of all files before the first is read.

        A program that writes to a file by mapping it into its memory changes the file's times
        only now and then. So what was read soon after its change is read once more, when it has
        settled, or at the last.

        What keeps changing while it is read, or cannot be read, stays as it was in the snapshot
        before, if it was there, and `skipped` is told. If the store fails, the next call goes on
        from there.
        """
        resumed = self._write_pending()
        self._bring_home(ctx)
        entries = self._scan(root, filters, ignore, skipped, stripped)
        if found:
            found((entry.path, entry.size) for entry in entries.values() if entry.kind == FILE)
        needed = not self._begun or (always and not self._number)
        settled = sys.maxsize if last else time.time_ns() - _SETTLED
        todo = [entry for entry in entries.values() if not self._known(entry, entries, settled)]
        if not needed and not todo and _same(entries, self._last.entries):
            self._last.entries = entries  # for their inodes
            return resumed
        wasteful = self._wasteful(entries)
        todo += [e for e in entries.values() if any(part.object in wasteful for part in e.parts)]
        if todo:
            self._upload.remember(
                (path for path in self._last.objects if path not in wasteful),
                self._small_files(wasteful),
            )
            self._settle(self._read(ctx, root, todo, step), entries, skipped)
        if not needed and _same(entries, self._last.entries):
            self._last.entries = entries  # for their inodes
            return resumed
        if first:
            first()
        self._write(entries)
        return True

    @property
    def number(self) -> int:
        """Of the last snapshot in this line; 0: there is none."""
        return self._number

    def sweep(self, spare: Container[int] = ()) -> None:
        """Remove the snapshots of this writer that are no longer needed, and what only they use.

        Those in `spare` are.
        """
        for number in sorted(self._written)[:-_KEPT]:
            if number in spare:
                continue
            self._store.delete([layout.snapshot_path(self._line, number)])
            del self._written[number]
        # What was brought home, or is on its way, is in no snapshot yet.
        used = frozenset(self._last.objects).union(
            *self._written.values(), self._pending.objects if self._pending else ()
        )
        self._upload.drop([path for path in self._upload.stored if path not in used])

    def _scan(
        self,
        root: Path,
        filters: Filters,
        ignore: Ignore | None,
        skipped: Skipped,
        stripped: Callable[[str], None] | None,
    ) -> dict[str, Entry]:
        unreadable: set[str] = set()

        def told(path: str, reason: str, *, lost: bool = False) -> None:
            if lost:
                unreadable.add("" if path == "." else path)
            skipped(path, reason, lost=lost)

        entries = scan(root, filters, ignore, told, stripped, strict=self._strict)
        if unreadable:
            lost = FromAbove(unreadable.__contains__, top="" in unreadable)
            entries |= {
                path: last
                for path, last in self._last.entries.items()
                if path not in entries and (path in unreadable or lost.above(path))
            }
        return entries

    def _known(self, entry: Entry, entries: dict[str, Entry], settled: int) -> bool:
        """Whether no byte of this entry has to be read; completes it from the last snapshot.

        `settled`: what changed before this time has a time that can be trusted.
        """
        if entry.kind != FILE or not entry.size:
            return True
        last = self._last.entries.get(entry.path)
        if last is None or (last.size, last.mtime, last.ctime, last.inode) != (
            entry.size,
            entry.mtime,
            entry.ctime,
            entry.inode,
        ):
            return False
        if entry.path in self._young and entry.ctime <= settled:
            return False
        entries[entry.path] = last if last.mode == entry.mode else last._replace(mode=entry.mode)
        return True

    def _read(self, ctx: Context, root: Path, todo: list[Entry], step: str) -> Readings:
        total = sum(entry.size for entry in todo)
        done = 0

        def progress(size: int) -> None:
            nonlocal done
            done += size
            ctx.progress(step, min(done, total), total)

        began = time.time_ns()
        with Workers(ctx, self._workers) as workers:
            reader = Reader(ctx, root, self._upload, workers, strict=self._strict)
            readings = reader.read(todo, progress)
        self._young.difference_update(entry.path for entry in todo)
        self._young.update(
            path for path, entry in readings.entries.items() if began - entry.ctime < _SETTLED
        )
        return readings

    def _settle(self, readings: Readings, entries: dict[str, Entry], skipped: Skipped) -> None:
        entries.update(readings.entries)
        for path in readings.vanished:
            del entries[path]
        missing = dict.fromkeys(readings.restless, "it kept changing while being read")
        missing |= {path: f"could not read it ({why})" for path, why in readings.unreadable.items()}
        for path, why in missing.items():
            last = self._last.entries.get(path)
            if last is not None and last.kind == FILE:
                entries[path] = last
                skipped(path, f"{why}; the snapshot keeps its previous version", lost=True)
            else:
                del entries[path]
                skipped(path, why, lost=True)

    def _write(self, entries: dict[str, Entry]) -> None:
        sizes = self._upload.stored | self._last.objects
        used = dict.fromkeys(p.object for e in entries.values() for p in e.parts if p.object)
        self._pending = Manifest(entries, {path: sizes[path] for path in used})
        self._write_pending()

    def _write_pending(self) -> bool:
        """Write the manifest that is on its way; False if there is none.

        If the store fails, the very same is written again, because the store may have it.
        """
        manifest = self._pending
        if manifest is None:
            return False
        number = self._number + 1
        path = layout.snapshot_path(self._line, number)
        # Of a power cut, too, a snapshot is whole or not there.
        self._store.keep([name for name in manifest.objects if name not in self._kept])
        won = self._store.put_new(path, encode(manifest))
        self._store.keep([path])
        self._pending = None
        if not won:
            raise Conflict(
                f"Another writer stored snapshot {number} of {self._line}",
                hint="Only one writer can store a folder at a time; try again.",
            )
        self._last = manifest
        self._begun = True
        self._number = number
        self._written[number] = frozenset(manifest.objects)
        self._kept = set(manifest.objects)
        return True

    def _bring_home(self, ctx: Context) -> None:
        """Copy what the last snapshot uses of former attempts into this line, within the store."""
        homes = {layout.objects_prefix(self._line), layout.objects_prefix(self._base)}
        foreign = {path for path in self._last.objects if path.rpartition("/")[0] not in homes}
        if not foreign:
            return
        moved: dict[str, str] = {}
        with Workers(ctx, self._workers) as workers:
            for path in foreign:
                workers.submit(self._copy, path, then=moved.update)
        for path, home in moved.items():
            self._upload.stored[home] = self._last.objects[path]
        self._last.objects = {
            moved.get(path, path): size
            for path, size in self._last.objects.items()
            if path in moved or path not in foreign
        }
        self._last.entries = {
            path: moved_entry
            for path, entry in self._last.entries.items()
            if (moved_entry := _rehomed(entry, moved, self._last.objects)) is not None
        }

    def _copy(self, path: str) -> dict[str, str]:
        home = f"{layout.objects_prefix(self._line)}/{path.rpartition('/')[2]}"
        try:
            self._store.copy(path, home)
        except NotFound:
            return {}  # its files are read from the disk again
        return {path: home}

    def _wasteful(self, entries: dict[str, Entry]) -> set[str]:
        """Packs of this line that are mostly unused, or many and tiny: to be packed anew."""
        if self._base == self._line:
            return set()  # a base is never swept, so nothing would be gained
        home = layout.objects_prefix(self._line)
        live: dict[str, int] = {}
        for entry in entries.values():
            if 0 < entry.size < SMALL and entry.parts and entry.parts[0].object.startswith(home):
                path = entry.parts[0].object
                live[path] = live.get(path, 0) + entry.size
        sizes = {path: self._last.objects[path] for path in live}
        wasteful = {path for path, size in sizes.items() if live[path] * _WASTE < size}
        tiny = {path for path, size in sizes.items() if size < SMALL}
        return wasteful | (tiny if len(tiny) > _TINY_PACKS else set())

    def _small_files(self, wasteful: set[str]) -> Iterable[Part]:
        return (
            entry.parts[0]
            for entry in self._last.entries.values()
            if 0 < entry.size < SMALL and entry.parts[0].object not in wasteful
        )


def _same(one: dict[str, Entry], other: dict[str, Entry]) -> bool:
    if len(one) != len(other):
        return False
    for path, entry in one.items():
        twin = other.get(path)
        if entry is not twin and (twin is None or entry[:7] != twin[:7]):
            return False
    return True


def _rehomed(entry: Entry, moved: dict[str, str], objects: dict[str, int]) -> Entry | None:
    parts = tuple(part._replace(object=moved.get(part.object, part.object)) for part in entry.parts)
    if any(part.object and part.object not in objects for part in parts):
        return None
    return entry._replace(parts=parts)
