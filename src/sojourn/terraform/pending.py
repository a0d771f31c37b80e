"""Creations that no state of Terraform has yet, written down on this computer.

Terraform learns the id of a new task only when its creation is over. If the provider or Terraform
is killed before that, the next creation of the same task goes on with what is there instead of
making a second one, and every command warns of it until then.

    STATE/sojourn/terraform/ID.json     of which task it is; locked while its creation goes on
    STATE/sojourn/terraform/ID.made     the same after that; locked while the provider lives

The provider removes the second when Terraform ends it in order, and any command that finds the
task in a state. A removal holds the first as well, empty: of one name there may be two resources.
STATE is $XDG_STATE_HOME or ~/.local/state.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.userfolders import state_home
from sojourn.terraform.plugin.diagnostics import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.task import Task

__all__ = ["Note", "broken_off", "creation", "forget", "removal", "settle"]

_BEGUN, _MADE = ".json", ".made"
_TRIES = 5  # whoever looks at a note holds it for an instant

_own: dict[Path, int] = {}  # the notes that this process holds, with their locks


@dataclass(frozen=True)
class Note:
    """What is known of a creation: where, and a fingerprint of what."""

    cloud: str
    folder: str
    mark: str

    @classmethod
    def on(cls, task: Task, called: str = "") -> Note:
        """The same for the same task made in the same folder and workspace.

        Tells nothing of what is in it.
        """
        folder = os.getcwd()
        where = {"folder": folder, "workspace": _workspace()}
        where |= {"called": called} if called else {}
        text = json.dumps({**task.to_dict(), **where}, sort_keys=True)
        return cls(task.cloud, folder, hashlib.sha256(text.encode()).hexdigest())

    @classmethod
    def read(cls, lock: int) -> Note | None:
        try:
            return cls(**json.loads(os.pread(lock, 10_000, 0)))
        except (ValueError, TypeError):
            return None  # killed while it was written


@contextmanager
def creation(ctx: Context, task: Task, called: str = "") -> Iterator[tuple[TaskId, bool]]:
    """The id to create a task with, and whether an earlier creation of it was broken off.

    `called`: part of a new id, for people to know it by.

    The note on it stays until Terraform is known to have what is answered: the block's result, or
    a Failure with a state. It goes with a Failure without one, unless it was there before, and
    stays after any other exception.
    """
    folder = _folder()
    note = Note.on(task, called)
    earlier = _taken_over(folder, note)
    path, others = (earlier, False) if earlier else _begun(ctx, folder, _new_id(task, called), note)
    try:
        yield TaskId.parse(path.stem), earlier is not None
    except Failure as failure:
        if failure.state is not None:
            _answered(path)
        elif others:
            os.close(_own.pop(path))
        else:
            _remove(path)
        raise
    except BaseException:
        os.close(_own.pop(path))
        raise
    _answered(path)


@contextmanager
def removal(ctx: Context, id: str) -> Iterator[bool]:
    """Let no creation under this id go on meanwhile; tells whether it is to be removed at all.

    It is not if a creation in this process has answered with it: a resource that comes in place of
    another, with the same name, has taken it over.
    """
    path = _folder() / f"{id}{_BEGUN}"
    with suppress(OSError):  # where notes cannot be written, nothing is created either
        _own[path] = _held(ctx, path)
    try:
        yield path.with_suffix(_MADE) not in _own
    finally:
        if path in _own:
            _remove(path)


def settle() -> None:
    """Terraform has all that was made."""
    for path in list(_own):
        _remove(path)


def broken_off() -> Iterator[tuple[str, Note, bool]]:
    """The ids of tasks whose creation was broken off, with what is known of each.

    And whether it was complete: then it may be that a state has it all the same.
    """
    for path in _paths(_folder()):
        lock = None
        with suppress(OSError):
            lock = _lock(path, fcntl.LOCK_SH)
        if lock is not None:
            note = Note.read(lock)
            os.close(lock)
            if note:
                yield path.stem, note, path.suffix == _MADE
            else:
                _forget(path, unreadable=True)


def forget(id: str) -> None:
    """It is in a state of Terraform, or nothing is left of it. One under way is not touched."""
    for suffix in (_BEGUN, _MADE):
        _forget(_folder() / f"{id}{suffix}")


def _forget(path: Path, *, unreadable: bool = False) -> None:
    """`unreadable`: only if it is; whoever is killed while writing it has made nothing yet."""
    with suppress(OSError):
        lock = _lock(path)
        if lock is None:
            return
        if unreadable and Note.read(lock):
            os.close(lock)
            return
        _own[path] = lock
        _remove(path)


def _folder() -> Path:
    return state_home() / "sojourn" / "terraform"


def _workspace() -> str:
    """Terraform's, which has a state of its own."""
    chosen = Path(os.environ.get("TF_DATA_DIR") or ".terraform", "environment")
    with suppress(OSError, ValueError):
        return os.environ.get("TF_WORKSPACE") or chosen.read_text()
    return "default"


def _paths(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if _is_note(path))
    except OSError:
        return []


def _is_note(path: Path) -> bool:
    try:
        return path.suffix in (_BEGUN, _MADE) and bool(TaskId.parse(path.stem))
    except InvalidInput:
        return False


def _taken_over(folder: Path, note: Note) -> Path | None:
    for path in _paths(folder):
        if path in _own or _peek(path) != note:
            continue
        for number in range(_TRIES):
            time.sleep(0.01 * number)
            lock = _lock(path)
            if lock is not None:
                _own[path] = lock
                return path
    return None


def _peek(path: Path) -> Note | None:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return Note.read(file)
    finally:
        os.close(file)


def _new_id(task: Task, called: str) -> TaskId:
    return TaskId.random(called) if called else TaskId.for_name(task.name, os.environ)


def _begun(ctx: Context, folder: Path, id: TaskId, note: Note) -> tuple[Path, bool]:
    """A note, and whether it is that of another task of the same name, which was broken off."""
    path = folder / f"{id}{_BEGUN}"
    lock = _held(ctx, path)
    others = Note.read(lock) is not None
    if not others:
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(asdict(note)).encode(), 0)
    _own[path] = lock
    return path, others


def _held(ctx: Context, path: Path) -> int:
    """Hold a note, which is made if need be; of two of one name, one after the other."""
    told = False
    while True:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _lock(path, fcntl.LOCK_EX, os.O_CREAT)
        if lock is not None:
            return lock
        if not told:
            ctx.note(f"Waiting for another apply that is creating or deleting {path.stem}")
            told = True
        ctx.sleep(0.05)


def _answered(path: Path) -> None:
    made = path.with_suffix(_MADE)
    with suppress(FileNotFoundError):
        path.replace(made)
    lock = _own.pop(path)
    if made in _own:  # made twice, in a way: by two resources of one name
        os.close(_own[made])
    _own[made] = lock


def _remove(path: Path) -> None:
    lock = _own.pop(path)
    if os.fstat(lock).st_nlink:  # else another's has taken its place
        path.unlink(missing_ok=True)
    os.close(lock)
    with suppress(OSError):
        path.parent.rmdir()
        path.parent.parent.rmdir()


def _lock(path: Path, how: int = fcntl.LOCK_EX, flags: int = 0) -> int | None:
    """Hold a note, if nobody else does and it is still there."""
    try:
        lock = os.open(path, os.O_RDWR | flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None
