"""Who connects to machines: a home with keys, and the `ssh` of this computer."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.ssh import HOST_KEY, PORT
from tests.support.waiting import patience, until


class Laptop:
    """`config` is a configuration that leads to machines, see `road`."""

    def __init__(self, home: Path, config: Path) -> None:
        self._home = home
        self._config = config
        self.key = self.make_key("key")
        self.other_key = self.make_key("other")

    def make_key(self, name: str) -> Path:
        key = self._home / name
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "somebody", "-f", str(key))
        subprocess.run(command, check=True)
        return key

    @property
    def public(self) -> str:
        return self.key.with_suffix(".pub").read_text().strip()

    def trust(self, address: str, machine: RunningMachine) -> str:
        """Wait until the machine lets clients in, and know it by its own key from now on."""
        until(lambda: machine.run("test", "-s", f"{HOST_KEY}.pub", check=False).returncode == 0)
        until(lambda: _listens(machine))
        kind, key, *_ = machine.run("cat", f"{HOST_KEY}.pub").stdout.split()
        self.known.write_text(f"{address} {kind} {key}\n")
        return key

    @property
    def known(self) -> Path:
        return self._home / "known_hosts"

    def command(self, *arguments: str, key: Path | None = None) -> list[str]:
        options = {
            "BatchMode": "yes",
            "GlobalKnownHostsFile": "/dev/null",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "IdentityFile": str(key or self.key),
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self.known),
        }
        return [
            *("ssh", "-F", str(self._config)),
            *(f"-o{name}={value}" for name, value in options.items()),
            *arguments,
        ]

    def ssh(
        self, *arguments: str, input: bytes = b"", key: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        command = self.command(*arguments, key=key)
        return subprocess.run(command, input=input, capture_output=True, timeout=patience(60))

    def open(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A session that is there: the command says so by its first line."""
        opened = subprocess.Popen(
            self.command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert opened.stdout
        assert opened.stdout.readline()
        return opened


def _listens(machine: RunningMachine) -> bool:
    with suppress(OSError), machine.connect(PORT):
        return True
    return False
