"""A manifest: the one object that makes a snapshot out of packs and chunks.

It is zlib-compressed JSON lines: a head, a line an entry (folders before what is in them), and a
tail with the table of objects, so that a cut-off manifest is noticed. What is read back is not
trusted: `decode` refuses everything that could write outside the folder that is restored to.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "FILE",
    "FOLDER",
    "LINK",
    "MODES",
    "Entry",
    "Manifest",
    "Part",
    "decode",
    "encode",
    "safe_target",
]

FILE, FOLDER, LINK = "f", "d", "l"
MODES = tuple(range(0o1000))  # a mode is taken from here, for Python keeps but one of each then
_FORMAT = 1
_OBJECT = re.compile(r"(?:workdir|ranks/[0-9]+/data/[0-9]+)/objects/[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BAD_PATH = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\0")
_PIECE = 1 << 20
_MOST = 1 << 62  # more than any size or time that a file system knows


class Part(NamedTuple):
    """A run of bytes of a file: where it lies. An empty `object` is a hole of zeros."""

    object: str
    offset: int
    length: int
    digest: str


class Entry(NamedTuple):
    """One path of a snapshot. `ctime` and `inode` are those on the machine that took it."""

    path: str
    kind: str
    mode: int
    mtime: int
    size: int = 0
    parts: tuple[Part, ...] = ()
    target: str = ""
    ctime: int = 0
    inode: int = 0

    def same_content(self, other: Entry) -> bool:
        """Whether a reader could tell the two apart by what they hold."""
        return (
            self.kind == other.kind
            and self.target == other.target
            and self.size == other.size
            and [p.digest for p in self.parts] == [p.digest for p in other.parts]
        )


@dataclass
class Manifest:
    """One snapshot: its entries, folders before what is in them, and its objects' sizes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(entry.size for entry in self.entries.values())

    def release(self) -> Iterator[Entry]:
        """Its entries, for one who replaces them: it holds none any more, which saves memory."""
        entries, self.entries = list(self.entries.values()), {}
        return iter(entries)


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    packer = zlib.compressobj(3)
    pieces = []
    for lines in _grouped(_lines(manifest)):
        pieces.append(packer.compress(lines))
    pieces.append(packer.flush())
    return b"".join(pieces)


def _lines(manifest: Manifest) -> Iterator[str]:
    dump = json.JSONEncoder(separators=(",", ":")).encode
    numbers = {path: number for number, path in enumerate(manifest.objects)}
    yield dump({"format": _FORMAT})
    for entry in manifest.entries.values():
        parts = [
            [numbers[p.object] if p.object else -1, p.offset, p.length, p.digest]
            for p in entry.parts
        ]
        yield dump([*entry[:5], parts, *entry[6:]])
    yield dump({"entries": len(manifest.entries), "objects": list(manifest.objects.items())})


def _grouped(lines: Iterable[str]) -> Iterator[bytes]:
    # One call to the compressor per line would cost more than compressing does.
    group: list[str] = []
    for line in lines:
        group.append(line)
        if len(group) == 1000:
            yield ("\n".join(group) + "\n").encode()
            group.clear()
    yield ("\n".join(group) + "\n").encode()


_UNREADABLE = (
    zlib.error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def decode(data: bytes | memoryview) -> Manifest:
    """Read a manifest; one that is damaged or would do harm raises IntegrityError."""
    try:
        return _decode(data)
    except _UNREADABLE as error:
        raise _refused(f"it cannot be read ({error})") from error


def _decode(data: bytes | memoryview) -> Manifest:
    lines = _decompressed(data)
    head = json.loads(next(lines, "null"))
    if head["format"] != _FORMAT:
        raise IntegrityError(
            f"The snapshot has format {head['format']}, and this version reads {_FORMAT}",
            hint="Use the version of sojourn that wrote it, or a newer one.",
        )
    rows: list[bytes] = []
    tail = None
    for line in lines:
        if line.startswith(b"{"):
            tail = json.loads(line)
            break
        rows.append(line)
    # What follows the tail is looked at as well: the checksum is at the very end.
    if tail is None or tail["entries"] != len(rows) or next(lines, None) is not None:
        raise _refused("it is cut off")
    table = [(str(path), int(size)) for path, size in tail["objects"]]
    for path, _ in table:
        if not _OBJECT.fullmatch(path):
            raise _refused(f"it names an object outside of the task: {path!r}")
    rows.reverse()
    entries: dict[str, Entry] = {}
    while rows:  # popped one by one: both forms at once would double the memory
        entry = _entry(json.loads(rows.pop()), table)
        _check(entry, entries)
        entries[entry.path] = entry
    return Manifest(entries, dict(table))


def _decompressed(data: bytes | memoryview) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    rest = b""
    for start in range(0, len(data), _PIECE):
        *lines, rest = (rest + unpacker.decompress(data[start : start + _PIECE])).split(b"\n")
        yield from lines
    if not unpacker.eof or unpacker.unused_data or rest:
        raise _refused("it is cut off")


def _entry(row: list[Any], table: list[tuple[str, int]]) -> Entry:
    path, kind, mode, mtime, size, parts, target, ctime, inode = row
    return Entry(
        path,
        kind,
        MODES[int(mode) & 0o777],
        int(mtime),
        int(size),
        tuple(_part(part, table) for part in parts),
        target,
        int(ctime),
        int(inode),
    )


def _part(part: list[Any], table: list[tuple[str, int]]) -> Part:
    number, offset, length = (int(value) for value in part[:3])
    digest = part[3]
    if number == -1:
        if digest or offset or length <= 0:
            raise _refused("a hole in it has no length")
        return Part("", 0, length, "")
    path, size = table[number]
    if number < 0 or offset < 0 or length <= 0 or offset + length > size:
        raise _refused(f"it reads outside of {path}")
    if not _DIGEST.fullmatch(digest):
        raise _refused("a part of it has no digest")
    return Part(path, offset, length, digest)


def _check(entry: Entry, entries: dict[str, Entry]) -> None:
    path = entry.path
    if not path or _BAD_PATH.search(path) or not _is_name(path):
        raise _refused(f"it has a path that leads elsewhere: {path!r}")
    if path in entries:
        raise _refused(f"it has {path!r} twice")
    parent = posixpath.dirname(path)
    if parent and (parent not in entries or entries[parent].kind != FOLDER):
        raise _refused(f"{path!r} is in something that is not a folder")
    if entry.kind == LINK:
        if not safe_target(path, entry.target) or not _is_name(entry.target):
            raise _refused(f"the symlink {path!r} leads outside, to {entry.target!r}")
    elif entry.kind not in (FILE, FOLDER):
        raise _refused(f"{path!r} is of an unknown kind")
    if entry.size != sum(part.length for part in entry.parts):
        raise _refused(f"the parts of {path!r} do not add up to its size")
    if entry.kind != FILE and entry.parts:
        raise _refused(f"{path!r} has a content, and is not a file")
    if max(entry.size, abs(entry.mtime)) > _MOST:
        raise _refused(f"the size or the time of {path!r} is impossible")


def _is_name(path: str) -> bool:
    """Whether a file system can hold this name, and would give back the very same."""
    return path.isascii() or os.fsdecode(os.fsencode(path)) == path


def safe_target(path: str, target: str) -> bool:
    """Whether a symlink at `path` stays inside: relative, and `..` only at its beginning.

    A `..` after a name could step out through another symlink, so it is not accepted.
    """
    if not target or target.startswith("/") or "\0" in target:
        return False
    names = [name for name in target.split("/") if name not in ("", ".")]
    ups = 0
    while ups < len(names) and names[ups] == "..":
        ups += 1
    return ups <= path.count("/") and ".." not in names[ups:]


def _refused(why: str) -> IntegrityError:
    return IntegrityError(
        f"A snapshot in the store was refused: {why}",
        hint="Nothing was written from it. The store was damaged or changed by something else.",
    )
