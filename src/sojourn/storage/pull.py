"""Bringing results home: what the ranks wrote, joined, into a folder that is in use.

None of it is lost. Where two ranks wrote different contents to one path, the lowest rank keeps the
name and the others get `name.rankN`. Where a local file is newer than what comes, or is saved
while it comes, or something else is in the way, the local one is renamed to `name.local`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import posixpath
import stat
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError, NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.digest import hasher
from sojourn.storage.manifest import FILE, FOLDER, LINK, Entry, Manifest, Part, decode
from sojourn.storage.restore import Restorer, explained
from sojourn.storage.snapshot import newest
from sojourn.storage.store import keep_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO

    from sojourn.core.context import Context
    from sojourn.core.filters import Filters
    from sojourn.storage.store import Store

__all__ = ["holds", "newest_of_rank", "pull", "snapshots_of_rank"]

_TRIES = 5
_STEP = "Downloading results"
_LINKS = 20  # symlinks followed to the output
_NAME = 255  # the most bytes of a name
_PIECE = 256 << 10  # bytes compared at once: what a manifest says of a length is not trusted
_FEW = 64  # files and folders that are flushed one by one

_Base = Mapping[str, Entry]
_Trace = tuple[int, int, int, int]


def snapshots_of_rank(store: Store, rank: int) -> list[str]:
    """The manifests of a rank: of its newest attempt first, and the newest of each first."""
    found = (item.path for item in store.list(layout.lines_prefix(rank)))
    return sorted((path for path in found if "/snapshots/" in path), key=layout.numbers)[::-1]


def newest_of_rank(store: Store, rank: int, ctx: Context | None = None) -> Manifest | None:
    """The last snapshot of a rank whose manifest is whole; None if there is none at all.

    `ctx` is told if it is not the newest one.
    """
    for _ in range(_TRIES):
        damage: IntegrityError | None = None
        try:
            for path in snapshots_of_rank(store, rank):
                try:
                    manifest = decode(store.get(path))
                except IntegrityError as error:
                    damage = damage or error
                    continue
                if damage and ctx:
                    ctx.warn(f"Rank {rank}: {damage.message}. The one before it comes home instead")
                return manifest
        except NotFound:
            continue  # swept meanwhile: there is a newer one
        if damage:
            raise damage
        return None
    raise Transient(f"The snapshots of rank {rank} changed too fast to be read", hint="Try again.")


@dataclass
class _Joined:
    """What is to be there in the end, by its local path."""

    entries: dict[str, Entry] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)

    def is_taken(self, base: _Base) -> Callable[[str], bool]:
        """Tells which paths are results; what was only pushed, as a former run left it, is none."""
        return lambda path: path in self.entries and not _untouched(self.entries[path], base)


def pull(
    ctx: Context, store: Store, ranks: range, output: str, into: Path, filters: Filters
) -> list[str]:
    """Bring `output` of all ranks into `into`; returns the paths that were written."""
    base = _pushed(ctx, store)
    newest_ones: list[list[str]] = []  # before each further try
    for attempt in range(_TRIES):
        try:
            if attempt:
                newest_ones.append([p for r in ranks for p in snapshots_of_rank(store, r)[:1]])
            return _pull(ctx, store, base, ranks, output, into, filters)
        except NotFound as error:
            # A machine swept a snapshot while we read it; it has written a newer one.
            missing = error.message
            ctx.sleep(0.1 * 2**attempt)
    if newest_ones and newest_ones[0] == newest_ones[-1]:
        # No fallback to a snapshot before: whoever deletes would lose what is whole of this one.
        raise IntegrityError(
            f"{missing}, and the results need it",
            hint="Pull other parts of the workdir (--output) to bring home what does not need it.",
        )
    raise Transient(
        "The results changed too fast to be read as a whole",
        hint="Try again, or after the script has ended.",
    )


def holds(store: Store, ranks: range, output: str) -> bool:
    """Whether any rank has stored something at this path."""
    path = posixpath.normpath(output)
    manifests = (newest_of_rank(store, rank) for rank in ranks)
    return any(m is not None and (path == "." or path in m.entries) for m in manifests)


def _pushed(ctx: Context, store: Store) -> _Base | None:
    """What was pushed, which tells what is a result; None if it cannot be read any more."""
    try:
        found = newest(store, layout.WORKDIR)
    except (IntegrityError, NotFound) as error:
        ctx.warn(
            f"{error.message}. So what was uploaded cannot be told from results: "
            "all of it comes, and local files that differ are kept beside"
        )
        return None
    return found[1].entries if found else {}


def _pull(
    ctx: Context,
    store: Store,
    base: _Base | None,
    ranks: range,
    output: str,
    into: Path,
    filters: Filters,
) -> list[str]:
    joined = _join(
        ctx,
        base or {},
        {rank: manifest for rank in ranks if (manifest := newest_of_rank(store, rank, ctx))},
        output,
        filters,
    )
    if not joined.entries:
        return []
    above = {folder.parent for folder in (into, *into.parents) if not folder.exists()}
    into.mkdir(parents=True, exist_ok=True)
    with _alone(ctx, into):
        room = _Room(ctx, into, base)
        todo = room.make(joined.entries)
        restorer = Restorer(store, into, replacing=room.look_again)
        restorer.restore(ctx, todo, joined.objects, step=_STEP)
        # What was here already as well: who wrote it may have been killed before this.
        results = [e for e in joined.entries.values() if not _untouched(e, base or {})]
        _bring_to_disk(into, [*results, *todo], above)
    return [entry.path for entry in todo if entry.kind != FOLDER]


class _Selection:
    """Which entries of one snapshot come home.

    If the output, or a folder above it, is a symlink, what it leads to comes along.
    """

    def __init__(self, output: str, filters: Filters, entries: Mapping[str, Entry]) -> None:
        self._filters = filters
        self._roots = [posixpath.normpath(output)]
        for _ in range(_LINKS):
            led = _led_to(self._roots[-1], entries)
            if led is None or led in self._roots:
                break
            self._roots.append(led)

    def __contains__(self, entry: Entry) -> bool:
        folder = entry.kind == FOLDER
        if any(root == "." or f"{entry.path}/".startswith(f"{root}/") for root in self._roots):
            return not self._filters.covers(entry.path, folder=folder)
        # What is above the output is needed as well, to put it into.
        above = any(root.startswith(f"{entry.path}/") for root in self._roots)
        return above and entry.kind in (FOLDER, LINK)


def _led_to(path: str, entries: Mapping[str, Entry]) -> str | None:
    """Where the first symlink on a path leads to, with the rest of the path; None without one."""
    names = path.split("/")
    for count in range(1, len(names) + 1):
        entry = entries.get("/".join(names[:count]))
        if entry is not None and entry.kind == LINK:
            folder = posixpath.dirname(entry.path)
            return posixpath.normpath(posixpath.join(folder, entry.target, *names[count:]))
    return None


def _join(
    ctx: Context,
    base: _Base,
    manifests: dict[int, Manifest],
    output: str,
    filters: Filters,
) -> _Joined:
    joined = _Joined()
    for rank, manifest in sorted(manifests.items()):
        joined.objects.update(manifest.objects)
        selection = _Selection(output, filters, manifest.entries)
        renamed: dict[str, str] = {}  # a folder that had to give way to a file of another rank
        for entry in manifest.entries.values():
            if entry not in selection:
                continue
            path = _under(renamed, entry.path)
            other = joined.entries.get(path)
            if other is None or (entry.kind == other.kind == FOLDER):
                joined.entries.setdefault(path, entry._replace(path=path))
            elif entry.same_content(other) or _untouched(entry, base):
                continue
            elif _untouched(other, base):
                joined.entries[path] = entry._replace(path=path)
            else:
                name = _free(joined.is_taken(base), path, f".rank{rank}")
                if entry.kind == FOLDER:
                    renamed[entry.path] = name
                joined.entries[name] = entry._replace(path=name)
                ctx.warn(
                    f"Ranks wrote different contents to {path}: that of rank {rank} is in {name}"
                )
    return joined


def _untouched(entry: Entry, base: _Base) -> bool:
    """Whether a rank left it as it was pushed; of a folder, what is in it would tell.

    The same bytes written once more have another time: they are a result.
    """
    pushed = base.get(entry.path)
    return (
        pushed is not None
        and entry.kind != FOLDER
        and entry.mtime == pushed.mtime
        and entry.same_content(pushed)
    )


def _under(renamed: dict[str, str], path: str) -> str:
    for folder, name in reversed(renamed.items()):  # the innermost
        if path.startswith(f"{folder}/"):
            return name + path[len(folder) :]
    return path


def _free(taken: Callable[[str], bool], path: str, suffix: str) -> str:
    """The path with a suffix that nothing has yet; a name that gets too long is shortened."""
    folder, slash, name = path.rpartition("/")
    number = 1
    while True:
        end = suffix if number == 1 else f"{suffix}.{number}"
        free = folder + slash + os.fsdecode(os.fsencode(name)[: _NAME - len(end)]) + end
        if not taken(free):
            return free
        number += 1


class _Room:
    """Room for what comes: what is in the way is moved away, also if it gets there later.

    A download can take an hour, and the user goes on working meanwhile.
    """

    def __init__(self, ctx: Context, into: Path, base: _Base | None) -> None:
        self._ctx = ctx
        self._into = into
        self._base = base
        self._given_up: dict[str, _Trace] = {}  # what may be replaced, by its path
        self._turn = threading.Lock()  # two that look for a free name at once could find the same

    def make(self, entries: dict[str, Entry]) -> list[Entry]:
        """What has to be written; moves away what is in the way.

        A file that the task left as it was pushed is no result: what is here now, stays.
        """
        todo = []
        for entry in entries.values():
            target = self._into / entry.path
            try:
                info = os.lstat(target)
            except FileNotFoundError:
                todo.append(entry)
                continue
            if entry.kind == FOLDER and stat.S_ISDIR(info.st_mode):
                continue  # it stays as it is here
            untouched = _untouched(entry, self._base or {})
            if not untouched and not _is_there(self._ctx, target, info, entry):
                if _worth_keeping(info, entry):
                    self._keep(target, "was changed here after the task wrote it")
                elif self._base is None:
                    self._keep(target, "differs from what the task has")
                else:
                    self._given_up[entry.path] = _trace(info)
                todo.append(entry)
        return todo

    def look_again(self, path: str) -> None:
        """Move away what was changed at this path, or appeared there, since room was made."""
        target = self._into / path
        try:
            if self._given_up.get(path) != _trace(os.lstat(target)):
                self._keep(target, "was changed here while the results came")
        except FileNotFoundError:
            return

    def _keep(self, target: Path, why: str) -> None:
        with self._turn:
            kept = _move_away(target)
        self._ctx.warn(f"{target} {why}; kept as {kept.name}")


def _trace(info: os.stat_result) -> _Trace:
    """What is another after every change of a file."""
    return (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _is_there(ctx: Context, target: Path, info: os.stat_result, entry: Entry) -> bool:
    """Whether the local file is what comes; its attributes are set right on the way.

    Its time says nothing: reproducible archives, for one, give every version the same.
    """
    if entry.kind == LINK:
        return stat.S_ISLNK(info.st_mode) and os.readlink(target) == entry.target
    if entry.kind != FILE or not stat.S_ISREG(info.st_mode) or info.st_size != entry.size:
        return False
    if not _same_bytes(ctx, target, entry):
        return False
    if info.st_mtime_ns != entry.mtime:
        os.utime(target, ns=(entry.mtime, entry.mtime))
    if info.st_mode & 0o777 != entry.mode:
        os.chmod(target, entry.mode)
    return True


def _same_bytes(ctx: Context, target: Path, entry: Entry) -> bool:
    try:
        with open(target, "rb", buffering=0) as file:
            return all(_same_part(ctx, file, part) for part in entry.parts)
    except PermissionError:
        return False  # a result may be one that its owner cannot read; it can be replaced


def _same_part(ctx: Context, file: FileIO, part: Part) -> bool:
    digest = hasher()
    left = part.length
    while left:
        ctx.check()
        piece = file.read(min(left, _PIECE))
        if not piece or not (part.object or piece == bytes(len(piece))):
            return False
        digest.update(piece)
        left -= len(piece)
    return not part.object or digest.hexdigest() == part.digest


def _worth_keeping(info: os.stat_result, entry: Entry) -> bool:
    """Whether it is newer than what comes, or something else altogether."""
    if entry.kind != FILE or not stat.S_ISREG(info.st_mode):
        return True
    return info.st_mtime_ns > entry.mtime


def _move_away(target: Path) -> Path:
    kept = Path(_free(os.path.lexists, os.fspath(target), ".local"))
    os.rename(target, kept)
    return kept


def _bring_to_disk(into: Path, entries: list[Entry], above: set[Path]) -> None:
    """Have it outlive a power cut: the store that it came from may be deleted next.

    `above`: folders in which folders were made to put it into.
    """
    if len({entry.path for entry in entries}) > _FEW:
        os.sync()  # the disk is told of all at once
        return
    files = {into / entry.path for entry in entries if entry.kind == FILE}
    folders = above | {(into / entry.path).parent for entry in entries}
    folders |= {into / entry.path for entry in entries if entry.kind == FOLDER}
    try:
        for path in [*files, *folders]:
            with explained(os.fspath(path)):
                keep_file(path)
    except OSError as error:
        if error.errno == errno.EIO:
            raise
        os.sync()  # one that may not be opened, or a file system that cannot do it singly


@contextmanager
def _alone(ctx: Context, folder: Path) -> Iterator[None]:
    """Keeps two pulls into one folder from writing at once."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    break  # this file system has no locks
            if not told:
                ctx.note(f"Waiting for another pull into {folder}")
                told = True
            ctx.sleep(0.1)
        yield
    finally:
        os.close(descriptor)
