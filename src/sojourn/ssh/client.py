"""OpenSSH of this computer, with a configuration of our own for one machine.

The user's own configuration comes after it, for what ours does not say: a `Host tpi-*` with a
ProxyJump leads to machines that have no public address.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.core.errors import InvalidInput, SojournError

__all__ = ["Access", "Client"]

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_CONFIG = """\
Host {alias}
    HostName {address}
    User {user}
    IdentityFile "{key}"
    IdentitiesOnly yes
    HostKeyAlias {alias}
    UserKnownHostsFile "{known}"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    UpdateHostKeys no
    PreferredAuthentications publickey
    BatchMode yes
    ForwardAgent no
    ForwardX11 no
    PermitLocalCommand no
    RemoteCommand none
    RequestTTY no
    ClearAllForwardings yes
    ControlMaster no
    ControlPath none
    EscapeChar none
    ConnectTimeout 15
    ServerAliveInterval 15
    ServerAliveCountMax 4
    LogLevel ERROR
Match all
    Include "{own}"
"""


@dataclass(frozen=True)
class Access:
    """How to get into a machine. `host_keys`: as the machine published them, one a line."""

    alias: str
    address: str
    user: str
    key: str = field(repr=False)
    host_keys: str = ""


def _checked(access: Access) -> Access:
    """Refuse what would be more than a word of the configuration: the user comes from the task's
    description, which on some clouds others can write, and a line of it could name a program."""
    if not _USER.fullmatch(access.user):
        raise InvalidInput("image", f"{access.user!r} cannot be a user of the machine's image")
    try:
        ipaddress.ip_address(access.address)
    except ValueError as error:
        raise SojournError(
            f"The cloud returned {access.address!r}, which is not an address",
            hint="Try again in a moment.",
        ) from error
    return access


class Client:
    """Commands that reach a machine; the key is in a private folder until nobody has this."""

    def __init__(self, given: Access) -> None:
        access = _checked(given)
        program = shutil.which("ssh")
        if program is None:
            raise SojournError(
                "ssh not found", hint="Install OpenSSH's client, such as openssh-client."
            )
        folder = tempfile.mkdtemp(prefix="sojourn-ssh-")
        weakref.finalize(self, shutil.rmtree, folder, True)
        self._program = program
        self._access = access
        self._config = _written(Path(folder), access)
        self.folder = Path(folder)

    def command(self, words: list[str], *, shown: bool = False) -> list[str]:
        """The command here for a command there, as root; `shown`: on a terminal."""
        as_root = [] if self._access.user == "root" else ["sudo", "-n"]
        there = shlex.join([*as_root, *words])
        tty = ["-tt"] if shown else ["-T"]
        return [self._program, "-F", str(self._config), *tty, self._access.alias, "--", there]


def _written(folder: Path, access: Access) -> Path:
    key, known, config = folder / "key", folder / "known_hosts", folder / "config"
    _private(key, access.key)
    lines = [" ".join(line.split()[:2]) for line in access.host_keys.splitlines()]
    known.write_text("".join(f"{access.alias} {line}\n" for line in lines))
    own = os.path.expanduser("~/.ssh/config")
    text = _CONFIG.format(
        alias=access.alias,
        address=access.address,
        user=access.user,
        key=key,
        known=known,
        own=own,
    )
    config.write_text(text)
    return config


def _private(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w") as file:
        file.write(text)
