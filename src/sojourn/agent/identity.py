"""What a machine may do in its cloud is not for all of its users.

Clouds tell machines who they are at fixed addresses, whoever asks there. So some users must not.
"""

from __future__ import annotations

import subprocess

__all__ = ["hide_from"]

_ADDRESSES = ("169.254.169.254", "168.63.129.16")
_WITHIN = 30.0  # seconds


def hide_from(user: int) -> str:
    """Keep a user, by number, from asking; why it could not be done, or nothing.

    By the agent: the script may be in a container, whose root must not change the network.
    """
    if user <= 0:
        return "jobs would have to run as another user than root"
    for address in _ADDRESSES:
        matched = ("--match", "owner", "--uid-owner", str(user))
        rejected = ("iptables", "--append", "OUTPUT", "--destination", address, *matched)
        prohibited = ("ip", "rule", "add", "to", address, "uidrange", f"{user}-{user}")
        if not _run(*rejected, "--jump", "REJECT") and not _run(*prohibited, "prohibit"):
            return "the machine image has neither iptables nor ip"
    return ""


def _run(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
