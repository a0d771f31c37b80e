"""A key of the user's own that opens this machine by SSH, beside the task's."""

from __future__ import annotations

import os
import pwd

from sojourn.agent.background import say
from sojourn.storage.beneath import Beneath
from sojourn.storage.files import open_inner, opened, write_all

__all__ = ["authorize"]

_KEYS = "authorized_keys"
_LONGEST = 1 << 20  # bytes of keys
_WRITTEN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def authorize(user: str, key: str) -> None:
    """Let a key in as this user; what cannot be done is told: the task goes on without.

    By root, in a folder of the user's: no symlink there is followed.
    """
    try:
        account = pwd.getpwnam(user)
        with Beneath(account.pw_dir) as home:
            folder = open_inner(home.folder(""), ".ssh", make=True)
            try:
                _add(folder, key, account.pw_uid, account.pw_gid)
            finally:
                os.close(folder)
    except (KeyError, OSError) as error:
        say(f"could not authorize the SSH key for {user}: {error}")


def _add(folder: int, key: str, uid: int, gid: int) -> None:
    known = _known(folder)
    if key.encode() in known.splitlines():
        return
    separator = b"" if not known or known.endswith(b"\n") else b"\n"
    file = os.open(_KEYS, _WRITTEN, 0o600, dir_fd=folder)
    try:
        os.fchmod(file, 0o600)
        os.fchown(file, uid, gid)
        os.ftruncate(file, 0)
        write_all(file, known + separator + key.encode() + b"\n")
    finally:
        os.close(file)
    os.fchmod(folder, 0o700)
    os.fchown(folder, uid, gid)


def _known(folder: int) -> bytes:
    try:
        with opened(folder, _KEYS) as file:
            return os.read(file, _LONGEST)
    except FileNotFoundError:
        return b""
