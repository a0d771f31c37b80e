"""What a machine may do in its cloud is not for all of its users.

Clouds tell machines who they are at fixed addresses, whoever asks there. So some users must not,
nor containers with a network of their own. Some clouds answer DNS queries there: all may ask those.
"""

from __future__ import annotations

import pwd
import subprocess
from pathlib import Path

__all__ = ["hide_from"]

_ADDRESSES = ("169.254.169.254", "168.63.129.16")
_DNS = "53"
_PROTOCOLS = ("tcp", "udp")
_SUBORDINATE = Path("/etc/subuid")
_USERS, _CONTAINERS = (998, 999), (1000, 1001)  # priorities of rules: what passes, what does not
_WITHIN = 30.0  # seconds


def hide_from(user: int) -> str:
    """Keep a user, by number, from asking; why it could not be done, or nothing.

    By the agent: the script may be in a container, whose root must not change the network.
    """
    if user <= 0:
        return "jobs would have to run as another user than root"
    for address in _ADDRESSES:
        for first, last in ((user, user), *_subordinates(user)):
            if not _reject(address, first, last) and not _prohibit(address, first, last):
                return "the machine image has neither iptables nor ip"
        if not _hide_from_containers(address):
            return "the machine image has no ip"
    return ""


def _subordinates(user: int) -> list[tuple[int, int]]:
    """The ranges of numbers that a user can take on, as rootless containers do."""
    try:
        names = {str(user), pwd.getpwuid(user).pw_name}
    except KeyError:
        names = {str(user)}
    try:
        rows = [line.split(":") for line in _SUBORDINATE.read_text().splitlines()]
    except OSError:
        return []
    own = [row[1:] for row in rows if row[0] in names and "".join(row[1:]).isdecimal()]
    return [(int(first), int(first) + int(count) - 1) for first, count in own]


def _reject(address: str, first: int, last: int) -> bool:
    matched = ("--match", "owner", "--uid-owner", f"{first}-{last}")
    rejected = ("iptables", "--append", "OUTPUT", "--destination", address, *matched)
    return all(
        _run(*rejected, "--protocol", each, "!", "--destination-port", _DNS, "--jump", "REJECT")
        for each in _PROTOCOLS
    )


def _prohibit(address: str, first: int, last: int) -> bool:
    """The same where there is no iptables."""
    users = ("uidrange", f"{first}-{last}")
    return _pass_dns(address, _USERS, *users) and _rule(address, _USERS[1], *users, "prohibit")


def _hide_from_containers(address: str) -> bool:
    """Of all that is not sent by this machine itself, but by containers on it."""
    local = ("iif", "lo", "lookup", "main")
    return (
        _rule(address, _CONTAINERS[0], *local)
        and _pass_dns(address, _CONTAINERS)
        and _rule(address, _CONTAINERS[1], "prohibit")
    )


def _pass_dns(address: str, among: tuple[int, int], *matched: str) -> bool:
    return all(
        _rule(address, among[0], *matched, "ipproto", each, "dport", _DNS, "lookup", "main")
        for each in _PROTOCOLS
    )


def _rule(address: str, priority: int, *rest: str) -> bool:
    return _run("ip", "rule", "add", "to", address, "priority", str(priority), *rest)


def _run(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
