"""A file with the output of rank 0: whole, or not there at all."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.api import Handle

__all__ = ["write_result"]


def write_result(handle: Handle, path: Path) -> None:
    """Write what the last attempt of rank 0 printed.

    The file of a former run stays, with a number: NAME.1.txt beside NAME.txt, and so on.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write(handle, temporary)
            _keep_former(path)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise SojournError(
            f"Could not write {path}: {error.strerror}",
            hint=f"The task was kept. Run `sojourn logs {handle.id} --rank 0` to see its log, and "
            f"`sojourn delete {handle.id}` to download its results and delete it.",
        ) from error


def _write(handle: Handle, file: Path) -> None:
    attempt = 0
    with open(file, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as written:
        for line in handle.logs(rank=0):
            if line.attempt > attempt:
                attempt = line.attempt
                written.seek(0)
                written.truncate()
            written.write(f"{line.text}\n")
        written.flush()
        os.fsync(written.fileno())


def _keep_former(path: Path) -> None:
    """Give it another name, which must be free; it has both until the new file takes its place."""
    for number in count(1) if os.path.lexists(path) else ():
        try:
            os.link(
                path, path.with_name(f"{path.stem}.{number}{path.suffix}"), follow_symlinks=False
            )
        except FileExistsError:
            continue
        return
