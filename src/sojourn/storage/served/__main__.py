"""Serve a folder to whoever started this.

`python3 -m sojourn.storage.served FOLDER [--signs FOLDER]`
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from sojourn.storage.folder import FolderStore
from sojourn.storage.served.server import serve

_PIPE = 1 << 20  # bytes; the most that a user may ask for


def main(arguments: list[str]) -> None:
    """Serve, until the client is gone."""
    signs = None
    if len(arguments) == 3 and arguments[1] == "--signs":
        signs = Path(arguments.pop())
        arguments.pop()
    if len(arguments) != 1:
        raise SystemExit("usage: python3 -m sojourn.storage.served FOLDER [--signs FOLDER]")
    folder = Path(arguments[0])
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder")
    _widen(0)
    _widen(1)
    serve(FolderStore(folder), 0, 1, signs=signs)
    os._exit(0)  # a worker may wait for a line that is gone


def _widen(pipe: int) -> None:
    """Let a pipe hold several pieces: each that does not fit costs two switches of processes."""
    with suppress(AttributeError, OSError):  # Linux only, and it may be something else
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


if __name__ == "__main__":
    main(sys.argv[1:])
