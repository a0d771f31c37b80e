"""The small files of a task, put where its script finds them.

Those in the workdir are written when an attempt starts with what was pushed: a later one finds
them as the snapshot has them. Those at absolute paths are kept ready in a folder, from which
whoever starts the script puts or mounts them: they are the same for every attempt.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.disk import remove_tree
from sojourn.agent.shared import Shared
from sojourn.core.gang import absolute, relative
from sojourn.storage.beneath import Beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["put_into", "put_on_machine", "ready", "stage"]

_FOLDER = "files"
_PUT = "files.json"  # the paths of those that were put on the machine
_MODE = 0o644


def put_into(workdir: Path, files: Mapping[str, str]) -> None:
    """Write those that belong into the workdir, over what was pushed."""
    for path, text in relative(files).items():
        _write(workdir, path, text.encode("utf-8", "surrogateescape"))


def stage(folder: Path, files: Mapping[str, str]) -> None:
    """Keep those at absolute paths ready in the folder of a machine."""
    root = folder / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    remove_tree(root)  # of the attempt before
    for path, text in absolute(files).items():
        _write(folder, f"{_FOLDER}{path}", text.encode("utf-8", "surrogateescape"))


def ready(folder: Path) -> Iterator[tuple[Path, str]]:
    """What is kept ready: where it is, and at which path the script expects it."""
    root = folder / _FOLDER
    with suppress(FileNotFoundError), Beneath(root, strict=True) as there:
        for above, items in there.walk():
            for item in items:
                if item.is_file(follow_symlinks=False):
                    path = Path(above, item.name)
                    yield root / path, f"/{path}"


def put_on_machine(folder: Path) -> None:
    """Write what is kept ready to its paths, on a machine that is there for one task.

    What an earlier run put on it and this one does not have is removed.
    """
    wanted = {path: file for file, path in ready(folder)}
    put = folder / _PUT
    for path in _put_before(put) - set(wanted):
        with suppress(OSError):  # the script may have made something else of it
            Path(path).unlink()
    Shared(folder).write(_PUT, json.dumps(list(wanted)).encode())
    for path, file in wanted.items():
        _put_at(Path(path), Shared(folder).read(f"{_FOLDER}{path}", file.stat().st_size))


def _put_before(put: Path) -> set[str]:
    try:
        return set(json.loads(put.read_text()))
    except (OSError, ValueError):
        return set()  # there was no run before, or it could not write this


def _write(folder: Path, path: str, data: bytes) -> None:
    shared = Shared(folder)
    above = path.rpartition("/")[0]
    if above:
        shared.make(above)
    shared.write(path, data, _MODE)


def _put_at(file: Path, data: bytes) -> None:
    """Folders above it may be symlinks, as `/var/run` is: the image has them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Shared(file.parent.resolve()).write(file.name, data, _MODE)
