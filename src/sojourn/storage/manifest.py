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
from functools import lru_cache
from itertools import chain, islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.core.errors import IntegrityError, QuotaError
from sojourn.core.untrusted import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.storage.store import Store

__all__ = [
    "FILE",
    "FOLDER",
    "LINK",
    "MODES",
    "Allowance",
    "Entry",
    "Manifest",
    "Part",
    "decode",
    "encode",
    "read_manifest",
    "safe_target",
]

FILE, FOLDER, LINK = "f", "d", "l"
MODES = tuple(range(0o1000))  # a mode is taken from here, for Python keeps but one of each then
_FORMAT = 1
_OBJECT = re.compile(r"(?:workdir|ranks/[0-9]+/data/[0-9]+)/objects/[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BAD_PATH = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\0")
_NO_NAMES = ("", ".", "..")
_PARSED_AT_ONCE = 256  # lines; more take memory and save no more time
_PIECE = 1 << 20
_SHOWN = 200  # characters of what makes no sense
_MOST = 1 << 62  # more than any size or time that a file system knows
# What a manifest may cost whoever reads it. It is counted in memory, for its own bytes tell little
# of that: paths shrink to a thousandth. Who writes one counts in the same way.
_MEMORY = 1 << 30  # bytes of its entries, as `_memory_of` counts them: 1.5 million small files
_OF_ENTRY, _OF_PART = 350, 200
_OBJECTS = 1 << 20  # 8 TB, and not all of it need be new
_LARGEST = 256 << 20  # bytes of the whole
_LONGEST_LINE = 128 << 20  # of the table, or of a file of 13 TB
# JSON writes a character as six. The text of honest ones was up to 206 times as long as their
# bytes, with sparse files and deep folders; deflate could do 1030.
_LONGEST_TEXT, _RATIO = 6 * _MEMORY, 512
_LISTS, _VALUES = 1 << 21, 4  # in a line, and values of each: a sparse file can have 16 TB


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


def _memory_of(entry: Entry) -> int:
    """The bytes of memory that an entry takes, about."""
    return _OF_ENTRY + getsizeof(entry.path) + getsizeof(entry.target) + _OF_PART * len(entry.parts)


class Allowance:
    """What the entries of one snapshot may take of memory; `take` raises QuotaError beyond it."""

    def __init__(self) -> None:
        self._left = _MEMORY

    def take(self, entry: Entry) -> None:
        self._left -= _memory_of(entry)
        if self._left < 0:
            raise _too_large()


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest; one that no reader would take raises QuotaError."""
    allowance = Allowance()
    for entry in manifest.entries.values():
        allowance.take(entry)
    if len(manifest.objects) > _OBJECTS:
        raise _too_large()
    packer = zlib.compressobj(3)
    pieces = []
    for lines in _grouped(_lines(manifest)):
        pieces.append(packer.compress(lines))
    pieces.append(packer.flush())
    data = b"".join(pieces)
    if len(data) > _LARGEST:
        raise _too_large()
    return data


def _too_large() -> QuotaError:
    """The error for a folder of which no snapshot can be stored."""
    return QuotaError(
        "Could not store a snapshot: the folder has too many files, or too long paths "
        "(about 1.5 million files fit)",
        hint="Pack them into archives, or exclude some with storage.exclude.",
    )


def _lines(manifest: Manifest) -> Iterator[str]:
    dump = json.JSONEncoder(separators=(",", ":")).encode
    numbers = {path: number for number, path in enumerate(manifest.objects)}
    yield dump({"format": _FORMAT})
    for entry in manifest.entries.values():
        parts = [
            [numbers[p.object] if p.object else -1, p.offset, p.length, p.digest]
            for p in entry.parts
        ]
        line = dump([*entry[:5], parts, *entry[6:]])
        if len(line) > _LONGEST_LINE or len(parts) > _LISTS:
            raise _too_large()
        yield line
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


def read_manifest(store: Store, path: str) -> Manifest:
    """The manifest that an object holds. Absent: raises NotFound; damaged: IntegrityError."""
    return decode(store.get(path, most=_LARGEST))


def decode(data: bytes | memoryview) -> Manifest:
    """Read a manifest; one that is damaged or would do harm raises IntegrityError."""
    try:
        return _decode(data)
    except (zlib.error, *UNREADABLE) as error:
        raise _refused(f"could not decode it ({error})") from error
    except MemoryError as error:
        raise _refused("not enough memory to read it") from error


def _decode(data: bytes | memoryview) -> Manifest:
    count, table = _tail(data)
    left = _MEMORY
    entries: dict[str, Entry] = {}
    # Decompressed once more, for that is quick: to keep all lines until the table comes would
    # take memory, and of a manifest that means harm any amount of it.
    folder = ""  # that the entry before is in: the next one is mostly in the same
    for row in islice(_rows(data), count):
        entry = _plain_file(row, table, folder)
        if entry is None or entry.path in entries:
            entry = _entry(row, table)
            _check(entry, entries)
            folder = posixpath.dirname(entry.path)
        left -= _memory_of(entry)
        if left < 0:
            raise _refused("it has too many entries")
        entries[entry.path] = entry
    return Manifest(entries, dict(table))


def _rows(data: bytes | memoryview) -> Iterator[Any]:
    """All lines after the head. Parsed many at once: the calls would cost more than the parsing."""
    skipped = 1
    for group in _groups_of(data):
        for start in range(0, len(group), _PARSED_AT_ONCE):
            lines = group[start : start + _PARSED_AT_ONCE]
            rows: list[Any] = json.loads(b"[%b]" % b",".join(lines))
            if len(rows) != len(lines):
                raise _refused("it has an invalid entry")
            yield from islice(rows, skipped, None)
            skipped = 0


def _plain_file(row: list[Any], table: list[tuple[str, int]], folder: str) -> Entry | None:
    """The entry of a row that is what nearly all are: a file of one part, in this folder.

    `folder` was checked as the parent of another entry. None, if there is any doubt: `_entry` and
    `_check` know what is right, and say what is wrong.
    """
    path, kind, mode, mtime, size, parts, target, ctime, inode = row
    if kind != FILE or target != "" or len(parts) != 1:
        return None
    number, offset, length, digest = parts[0]
    if not (
        type(mode) is type(mtime) is type(size) is type(ctime) is type(inode) is int
        and type(number) is type(offset) is type(length) is int
        and type(path) is type(digest) is str
    ):
        return None
    parent, _, name = path.rpartition("/")
    if parent != folder or name in _NO_NAMES or "\0" in name or path[0] == "/":
        return None
    if not (0 <= number < len(table) and offset >= 0 and 0 < length == size):
        return None
    place, room = table[number]
    if offset + length > room or max(size, abs(mtime)) > _MOST:
        return None
    if not path.isascii() or not _DIGEST.fullmatch(digest):
        return None
    part = Part(place, offset, length, digest)
    return Entry(path, FILE, MODES[mode & 0o777], mtime, size, (part,), "", ctime, inode)


def _tail(data: bytes | memoryview) -> tuple[int, list[tuple[str, int]]]:
    """What the last line says: how many entries there are, and the table of objects.

    That all is there is known then, but not what is in the rows.
    """
    lines = _lines_of(data)
    head = json.loads(next(lines, "null"))
    written = _whole(head["format"])
    if written != _FORMAT:
        raise IntegrityError(
            f"Unsupported snapshot format {written}: this version of sojourn supports {_FORMAT}",
            hint="Use the version of sojourn that wrote it, or a newer one.",
        )
    rows, most = 0, _MEMORY // _OF_ENTRY
    tail: dict[str, Any] | None = None
    for line in lines:
        if line.startswith(b"{"):
            tail = json.loads(line)
            break
        if not line.startswith(b"["):
            raise _refused("it has an invalid entry")
        rows += 1
        if rows > most:
            raise _refused("it has too many entries")
    # What follows the tail is looked at as well: the checksum is at the very end.
    if tail is None or tail["entries"] != rows or next(lines, None) is not None:
        raise _refused("it is truncated")
    return rows, [_object(path, size) for path, size in tail["objects"]]


def _object(path: Any, size: Any) -> tuple[str, int]:
    if not _OBJECT.fullmatch(_text(path)):
        raise _refused(f"it refers to an object outside the task: {path[:_SHOWN]!r}")
    return path, _whole(size)


def _lines_of(data: bytes | memoryview) -> Iterator[bytes]:
    return chain.from_iterable(_groups_of(data))


def _groups_of(data: bytes | memoryview) -> Iterator[list[bytes]]:
    """Its lines, as many together as end in one piece of its text."""
    rest = bytearray()
    for text in _decompressed(data):
        rest += text
        if b"\n" in text:
            *lines, last = bytes(rest).split(b"\n")
            _refuse_crowded(lines[0])  # no other can be longer than a piece
            yield lines
            rest = bytearray(last)
        if len(rest) > _LONGEST_LINE:
            raise _refused("it has an overlong line")
    if rest:
        raise _refused("it is truncated")


def _decompressed(data: bytes | memoryview) -> Iterator[bytes]:
    """Its text, in pieces that are not too large whatever it shrank to."""
    unpacker = zlib.decompressobj()
    left = min(_LONGEST_TEXT, _PIECE + _RATIO * len(data))
    for start in range(0, len(data), _PIECE):
        piece: bytes | memoryview = data[start : start + _PIECE]
        while text := unpacker.decompress(piece, _PIECE):
            piece = unpacker.unconsumed_tail  # if this is empty, more text may come all the same
            left -= len(text)
            if left < 0:
                raise _refused("it is too large")
            yield text
    if not unpacker.eof or unpacker.unused_data:
        raise _refused("it is truncated")


def _refuse_crowded(line: bytes) -> None:
    """A long line of nothing but empty values would take thirty times its size in memory."""
    if len(line) <= _PIECE:
        return
    lists, values = line.count(b"[") + line.count(b"{"), line.count(b",")
    if lists > _LISTS or values > _VALUES * (lists + _VALUES):
        raise _refused("it has a line with too many values")


def _entry(row: list[Any], table: list[tuple[str, int]]) -> Entry:
    path, kind, mode, mtime, size, parts, target, ctime, inode = row
    return Entry(
        _text(path),
        _text(kind),
        MODES[_whole(mode) & 0o777],
        _whole(mtime),
        _whole(size),
        tuple(_part(part, table) for part in parts),
        _text(target),
        _whole(ctime),
        _whole(inode),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a string is missing")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a whole number is missing")
    return value


def _part(part: list[Any], table: list[tuple[str, int]]) -> Part:
    number, offset, length = (_whole(value) for value in part[:3])
    digest = part[3]
    if number == -1:
        if digest or offset or length <= 0:
            raise _refused("it has an invalid hole")
        return _hole(length)
    path, size = table[number]
    if number < 0 or offset < 0 or length <= 0 or offset + length > size:
        raise _refused(f"it refers to bytes outside {path}")
    if not _DIGEST.fullmatch(digest):
        raise _refused("it has an invalid digest")
    return Part(path, offset, length, digest)


@lru_cache(maxsize=16)  # a sparse file has many of one length, which then are but one in memory
def _hole(length: int) -> Part:
    return Part("", 0, length, "")


def _check(entry: Entry, entries: dict[str, Entry]) -> None:
    path = entry.path
    shown = repr(path[:_SHOWN])
    parent, slash, name = path.rpartition("/")
    above = entries.get(parent) if slash else None
    # Of one that is below another entry, the rest was looked at before.
    invalid = name in _NO_NAMES or "\0" in name or (above is None and _BAD_PATH.search(path))
    if invalid or not _is_name(path if above is None else name):
        raise _refused(f"it has an invalid path: {shown}")
    if path in entries:
        raise _refused(f"it has a duplicate path: {shown}")
    if slash and (above is None or above.kind != FOLDER):
        raise _refused(f"the parent of {shown} is not a folder")
    if entry.kind == LINK:
        if not safe_target(path, entry.target) or not _is_name(entry.target):
            target = repr(entry.target[:_SHOWN])
            raise _refused(f"the symlink {shown} points outside, to {target}")
    elif entry.kind not in (FILE, FOLDER):
        raise _refused(f"{shown} has an unknown type")
    if entry.size != sum(part.length for part in entry.parts):
        raise _refused(f"the parts of {shown} do not add up to its size")
    if entry.kind != FILE and entry.parts:
        raise _refused(f"{shown} has contents but is not a file")
    if max(entry.size, abs(entry.mtime)) > _MOST:
        raise _refused(f"{shown} has an invalid size or time")


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
        f"Could not use a snapshot in the store: {why}",
        hint="Nothing was restored from it. The store is damaged, or another program changed it.",
    )
