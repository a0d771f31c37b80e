"""What is in a folder, as entries without contents; nothing is read but names and attributes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol

from sojourn.storage.beneath import Beneath, is_elsewhere
from sojourn.storage.manifest import FILE, FOLDER, LINK, MODES, Allowance, Entry, safe_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sojourn.core.filters import Filters
    from sojourn.core.interfaces import Ignore

__all__ = ["Skipped", "entry_of", "link_target", "scan"]

_SPECIAL = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


class Skipped(Protocol):
    """Told of what is left out."""

    def __call__(self, path: str, reason: str, *, lost: bool = False) -> None:
        """`lost`: it belongs there; else it is something that snapshots do not hold."""


def scan(
    root: Path,
    filters: Filters,
    ignore: Ignore | None,
    skipped: Skipped,
    stripped: Callable[[str], None] | None = None,
    *,
    strict: bool = False,
) -> dict[str, Entry]:
    """All that is below a folder, by path, folders before what is in them, in a stable order.

    Absent: nothing, and `skipped` is told that `.` is lost. `stripped` is told of files with a
    setuid, setgid or sticky bit, which entries do not have. `strict`: see `Beneath`. More than a
    snapshot can hold raises QuotaError.
    """
    entries: dict[str, Entry] = {}
    allowance = Allowance()  # what no manifest can hold need not fill the memory before
    folders = [""]
    with Beneath(root, strict=strict) as there:
        while folders:
            folder = folders.pop()
            found = _scan_folder(root, there, folder, filters, ignore, skipped, stripped)
            for entry in found:
                allowance.take(entry)
                entries[entry.path] = entry
            folders.extend(entry.path for entry in reversed(found) if entry.kind == FOLDER)
    return entries


def _scan_folder(
    root: Path,
    there: Beneath,
    folder: str,
    filters: Filters,
    ignore: Ignore | None,
    skipped: Skipped,
    stripped: Callable[[str], None] | None,
) -> list[Entry]:
    found = []
    prefix = f"{folder}/" if folder else ""
    try:
        here = there.folder(folder)
        items = sorted(os.scandir(here), key=lambda item: item.name)
    except OSError as error:
        if not folder or not is_elsewhere(error):  # else it was removed since it was listed
            skipped(folder or ".", f"could not read the folder ({error.strerror})", lost=True)
        return []
    for item in items:
        path = prefix + item.name
        if filters.excludes(path, folder=item.is_dir(follow_symlinks=False)):
            continue
        try:
            info = item.stat(follow_symlinks=False)
            target = ""
            if stat.S_ISLNK(info.st_mode):
                target = link_target(root, path, os.readlink(item.name, dir_fd=here))
        except FileNotFoundError:
            continue  # removed since it was listed
        except OSError as error:
            skipped(path, f"could not read its attributes ({error.strerror})", lost=True)
            continue
        if ignore and ignore(path, folder=stat.S_ISDIR(info.st_mode)):
            continue
        entry = entry_of(path, info, target)
        if entry is None:
            skipped(path, "it is not a file, folder or symlink")
        elif entry.kind == LINK and not safe_target(path, target):
            skipped(path, f"the symlink points outside the folder, to {target}")
        else:
            found.append(entry)
            if stripped and info.st_mode & _SPECIAL and entry.kind == FILE:
                stripped(path)
    return found


def link_target(root: str | Path, path: str, target: str) -> str:
    """Where a symlink leads. One that names a place below `root` by its whole path is told from
    the symlink's own folder: elsewhere `root` has another path, or another content."""
    if target.startswith("/") and ".." not in target.split("/"):
        for top in (os.path.abspath(root), os.path.realpath(root)):
            if target == top or target.startswith(f"{top}/"):
                return os.path.relpath(target, os.path.dirname(f"{top}/{path}"))
    return target


def entry_of(path: str, info: os.stat_result, target: str = "") -> Entry | None:
    """An entry for what `stat` says; None for sockets, pipes and devices."""
    kind = stat.S_IFMT(info.st_mode)
    mode = MODES[info.st_mode & 0o777]
    mtime, ctime, inode = info.st_mtime_ns, info.st_ctime_ns, info.st_ino
    if kind == stat.S_IFREG:
        return Entry(path, FILE, mode, mtime, info.st_size, (), "", ctime, inode)
    if kind == stat.S_IFDIR:
        return Entry(path, FOLDER, mode, mtime, 0, (), "", ctime, inode)
    if kind == stat.S_IFLNK:
        # Neither mode nor time of a symlink can be set everywhere, so they do not count.
        return Entry(path, LINK, 0o777, 0, 0, (), target, ctime, inode)
    return None
