"""Listing the objects of a folder."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from operator import itemgetter

from sojourn.storage.files import UNFINISHED, open_inner
from sojourn.storage.objectinfo import ObjectInfo

__all__ = ["DEEPEST", "info_of", "list_folder"]

DEEPEST = 64  # parts of a path; somebody else's folders may have no end
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ABANDONED_AFTER = 86400.0  # seconds; no put takes so long


def info_of(path: str, info: os.stat_result) -> ObjectInfo:
    """What a store tells of a file."""
    modified = _EPOCH + timedelta(microseconds=info.st_mtime_ns // 1000)
    return ObjectInfo(path, info.st_size, modified)


def list_folder(folder: int, prefix: str, after: str) -> list[ObjectInfo]:
    """All files below an open folder whose paths sort after `after`; `prefix` is its own."""
    found: list[ObjectInfo] = []
    _collect(folder, prefix, after, DEEPEST, found)
    found.sort(key=itemgetter(0))
    return found


def _collect(folder: int, prefix: str, after: str, depth: int, found: list[ObjectInfo]) -> None:
    # Not scandir: of a long log, which grows at its end, only few names are looked at.
    names = os.listdir(folder)
    if after:
        names = [name for name in names if _may_be_after(f"{prefix}{name}/", after)]
    for name in names:
        path = prefix + name
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                if depth:
                    _collect_below(folder, name, f"{path}/", after, depth - 1, found)
            elif name.startswith(UNFINISHED):
                _remove_if_abandoned(folder, name, info)
            elif path > after and stat.S_ISREG(info.st_mode) and _is_text(path):
                found.append(info_of(path, info))
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone meanwhile, or something else by now


def _may_be_after(below: str, after: str) -> bool:
    return below > after or after.startswith(below)


def _collect_below(
    folder: int, name: str, prefix: str, after: str, depth: int, found: list[ObjectInfo]
) -> None:
    inner = open_inner(folder, name)
    try:
        _collect(inner, prefix, after, depth, found)
    finally:
        os.close(inner)


def _remove_if_abandoned(folder: int, name: str, info: os.stat_result) -> None:
    """Whoever wrote it was killed; nobody else would ever remove it."""
    if info.st_mtime < time.time() - _ABANDONED_AFTER:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _is_text(path: str) -> bool:
    """Names that are no text were not made by a store."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
