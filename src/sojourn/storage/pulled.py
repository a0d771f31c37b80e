"""What pulls of a task wrote on this computer, to tell it from all other files.

A file on this computer alone, which no machine can write. If it cannot be read or written, nothing
is known, and whoever replaces files keeps copies of all of them.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.core.above import with_folders
from sojourn.storage.localpath import Trace, trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Pulled"]

_FORMAT = 1
_FOLDERS_AT_MOST = 50
_PATHS_AT_MOST = 1_000_000  # in each folder; the oldest are forgotten


class Pulled:
    """The traces of what pulls wrote into one folder. `file` is None: nothing is remembered.

    `creators`: marks of those who created the task. A task of the same id that was created anew
    has none of them, and none of what the former one brought home is its own.
    """

    def __init__(self, file: Path | None, folder: Path, creators: Iterable[str] = ()) -> None:
        self._file = file
        self._creators = sorted(creators)
        self._folder = os.path.realpath(folder)
        self._known: dict[str, Any] | None = None
        self._wrote: set[str] | None = None
        self._new: dict[str, Trace] = {}

    def is_ours(self, path: str, found: Trace) -> bool:
        """Whether this is what the last pull wrote there, and nobody has touched it since."""
        return self._before().get(path) == [*found]

    def was_here(self, path: str) -> bool:
        """Whether a former pull wrote to this path, whatever is there now."""
        return path in self._before()

    def wrote_below(self, path: str) -> bool:
        """Whether a former pull wrote to this path, or into this folder."""
        if self._wrote is None:
            self._wrote = with_folders(self._before())
        return path in self._wrote

    def add(self, path: str, info: os.stat_result) -> None:
        """Remember what was just written; may be called by several threads at once."""
        self._new[path] = trace(info)

    def save(self) -> None:
        """Write all of it down, whole. What cannot be written is not remembered."""
        if self._file is None or not self._new:
            return
        folders = self._read()  # a pull into another folder may have written meanwhile
        paths = folders.pop(self._folder, {})
        for path in self._new:
            paths.pop(path, None)  # the newest come last
        paths |= self._new
        folders[self._folder] = dict(list(paths.items())[-_PATHS_AT_MOST:])
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(
                self._file,
                {
                    "format": _FORMAT,
                    "creators": self._creators,
                    "folders": dict(list(folders.items())[-_FOLDERS_AT_MOST:]),
                },
            )
        self._new = {}

    def _before(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self._read().get(self._folder, {})
        return self._known

    def _read(self) -> dict[str, dict[str, Any]]:
        """What is remembered, by folder and path. Absent, damaged, of another task: nothing."""
        if self._file is None:
            return {}
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            data = json.loads(self._file.read_bytes())
            creators, folders = data["creators"], data["folders"]
            same_task = creators == self._creators or not set(creators).isdisjoint(self._creators)
            whole = all(isinstance(paths, dict) for paths in folders.values())
            if data["format"] == _FORMAT and same_task and whole:
                return dict(folders)
        return {}


def _write(file: Path, data: dict[str, Any]) -> None:
    temporary = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        temporary.write_text(json.dumps(data))
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
