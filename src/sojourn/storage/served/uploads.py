"""Bodies on their way into the store: small ones in memory, others in a hidden file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError, Transient
from sojourn.storage.incoming import Incoming
from sojourn.storage.served.frames import PIECE

if TYPE_CHECKING:
    from sojourn.storage.folder import FolderStore

__all__ = ["Upload", "Uploads"]

_MOST = 256  # at once; each has open files


class Upload:
    """One body. The server's reader feeds it, and a worker finishes it."""

    def __init__(self, store: FolderStore, path: str, size: int, *, new: bool) -> None:
        self._store = store
        self._path = path
        self._new = new
        self._left = size
        self._small = bytearray()
        self._large = Incoming(store, path) if size > PIECE else None

    def feed(self, piece: bytes) -> bool:
        """Take a piece; True if that was the last one."""
        if len(piece) > self._left:
            raise IntegrityError(f"more bytes for {self._path} than announced")
        self._left -= len(piece)
        if self._large:
            self._large.write(piece)
        else:
            self._small += piece
        return not self._left

    def finish(self) -> bool:
        """Make it an object; whether it is the caller's."""
        try:
            if not self._large:
                if self._new:
                    return self._store.put_new(self._path, self._small)
                self._store.put(self._path, self._small)
                return True
            if self._new:
                return self._large.place_new()
            self._large.place()
            return True
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._large:
            with suppress(OSError):
                self._large.abandon()


class Uploads:
    """Those that are under way on a connection, by the id of their call."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store
        self._found: dict[int, Upload] = {}

    def begin(self, id: int, path: str, size: int, *, new: bool) -> Upload | None:
        """Expect a body; one without any bytes is whole already."""
        if len(self._found) >= _MOST or size < 0:
            raise Transient("too many uploads at once", hint="Try again.")
        upload = Upload(self._store, path, size, new=new)
        if not size:
            return upload
        self._found[id] = upload
        return None

    def feed(self, id: int, piece: bytes) -> Upload | None:
        """Take a piece; the upload, if it is whole now. Of one that was given up: nothing."""
        upload = self._found.get(id)
        if upload is None:
            return None
        try:
            if not upload.feed(piece):
                return None
        except BaseException:
            self.cancel(id)
            raise
        return self._found.pop(id)

    def cancel(self, id: int) -> None:
        """Its client has given it up."""
        upload = self._found.pop(id, None)
        if upload:
            upload.abandon()

    def abandon(self) -> None:
        """The connection is gone."""
        for id in list(self._found):  # noqa: A001
            self.cancel(id)
