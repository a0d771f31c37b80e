"""A path on this computer, beside what a snapshot has for it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.storage.digest import hasher
from sojourn.storage.files import opened
from sojourn.storage.manifest import FILE, FOLDER, LINK, Entry, Part
from sojourn.storage.scan import link_target

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.storage.beneath import Beneath

__all__ = ["LocalPath", "Trace", "trace"]

_PIECE = 256 << 10  # bytes compared at once: what a manifest says of a length is not trusted

Trace = tuple[int, int, int, int]


def trace(info: os.stat_result) -> Trace:
    """What is another after every change of a file."""
    return (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


@dataclass(frozen=True)
class LocalPath:
    """What is at a path below `root`, which is `there`."""

    root: str
    there: Beneath
    path: str
    info: os.stat_result

    @property
    def kind(self) -> str:
        """As an entry has it; empty for what no snapshot holds."""
        mode = self.info.st_mode
        if stat.S_ISREG(mode):
            return FILE
        if stat.S_ISDIR(mode):
            return FOLDER
        return LINK if stat.S_ISLNK(mode) else ""

    @property
    def trace(self) -> Trace:
        return trace(self.info)

    def has(self, ctx: Context, entry: Entry) -> bool:
        """Whether it is the same symlink or has the same bytes.

        Its time says nothing: reproducible archives, for one, give every version the same.
        """
        if entry.kind != self.kind:
            return False
        if entry.kind == LINK:
            return self._target() == entry.target
        return entry.kind == FILE and self.info.st_size == entry.size and self._read(ctx, entry)

    def _target(self) -> str:
        folder, name = self.there.within(self.path)
        return link_target(self.root, self.path, os.readlink(name, dir_fd=folder))

    def _read(self, ctx: Context, entry: Entry) -> bool:
        folder, name = self.there.within(self.path)
        try:
            with opened(folder, name) as file:
                return all(_same_part(ctx, file, part) for part in entry.parts)
        except PermissionError:
            return False  # a result may be one that its owner cannot read; it can be replaced


def _same_part(ctx: Context, file: int, part: Part) -> bool:
    digest = hasher()
    left = part.length
    while left:
        ctx.check()
        piece = os.read(file, min(left, _PIECE))
        if not piece or not (part.object or piece == bytes(len(piece))):
            return False
        digest.update(piece)
        left -= len(piece)
    return not part.object or digest.hexdigest() == part.digest
