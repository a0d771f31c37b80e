"""A key of the user's own that opens this machine by SSH, beside the task's."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from sojourn.agent.background import say

__all__ = ["authorize"]


def authorize(user: str, key: str) -> None:
    """Let a key in as this user; what cannot be done is told: the task goes on without."""
    try:
        account = pwd.getpwnam(user)
        folder = Path(account.pw_dir) / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / "authorized_keys"
        known = file.read_text() if file.exists() else ""
        if key in known.splitlines():
            return
        separator = "" if not known or known.endswith("\n") else "\n"
        file.write_text(f"{known}{separator}{key}\n")
        file.chmod(0o600)
        for path in (folder, file):
            os.chown(path, account.pw_uid, account.pw_gid)
    except (KeyError, OSError) as error:
        say(f"could not authorize the SSH key for {user}: {error}")
