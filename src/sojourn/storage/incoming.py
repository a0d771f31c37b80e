"""An object of a folder that arrives in pieces: hidden until all of it is there."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import Transient
from sojourn.storage.failures import translated
from sojourn.storage.files import create_unfinished, write_all
from sojourn.storage.placing import claim

if TYPE_CHECKING:
    from sojourn.storage.folder import FolderStore
    from sojourn.storage.objectinfo import Buffer

__all__ = ["Incoming"]

_COMPARED_AT_ONCE = 1 << 20
_CONFLICT_WAITS = (0.0, 0.05, 0.1, 0.2, 0.4)  # seconds


class Incoming:
    """Write the pieces, then `place` or `place_new` it once; `abandon` whatever comes of it.

    For one thread at a time.
    """

    def __init__(self, store: FolderStore, path: str) -> None:
        self._store = store
        self._path = path
        with translated(path), store.folder_for(path) as (folder, name):
            self._folder = os.dup(folder)
            self._name = name
            try:
                self._new, self._file = create_unfinished(folder)
            except BaseException:
                os.close(self._folder)
                raise
        self._open = True

    def write(self, piece: Buffer) -> None:
        """Append a piece."""
        with translated(self._path):
            write_all(self._file, piece)

    def place(self) -> None:
        """Make it the object, in place of the one that is there."""
        with translated(self._path):
            os.rename(self._new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.abandon()

    def place_new(self) -> bool:
        """Make it the object if there is none; True also if that one has the same bytes."""
        for wait in _CONFLICT_WAITS:
            with translated(self._path):
                if claim(self._folder, self._new, self._name):
                    return True
            same = self._is_same()
            if same is not None:
                return same
            time.sleep(wait)  # gone meanwhile: nobody has won yet
        raise Transient(f"{self._path} in the store kept changing", hint="Try again.")

    def _is_same(self) -> bool | None:
        with suppress(FileNotFoundError), self._store.reading(self._path) as there:
            if os.fstat(there).st_size != os.fstat(self._file).st_size:
                return False
            start = 0
            while piece := os.pread(there, _COMPARED_AT_ONCE, start):
                if piece != os.pread(self._file, len(piece), start):
                    return False
                start += len(piece)
            return True
        return None

    def abandon(self) -> None:
        """Leave nothing behind that was not placed."""
        if not self._open:
            return
        self._open = False
        os.close(self._file)
        with suppress(OSError):
            os.unlink(self._new, dir_fd=self._folder)
        os.close(self._folder)
