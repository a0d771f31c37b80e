"""The configuration of OpenSSH for one machine: nothing that others wrote adds a line to it."""

from __future__ import annotations

import stat
import subprocess

import pytest

from sojourn.core.errors import SojournError
from sojourn.ssh.client import Access, Client

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


def _access(**more: str) -> Access:
    given = {"address": "203.0.113.7", "user": "ubuntu", "key": "secret", "host_keys": _KEY}
    return Access(alias="tpi-machine-1", **{**given, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"user": "x\n    ProxyCommand touch /tmp/attacked"},
        {"user": "-oProxyCommand=touch"},
        {"user": ""},
        {"user": "a b"},
        {"address": "203.0.113.7\n    ProxyCommand touch /tmp/attacked"},
        {"address": "-oProxyCommand=touch"},
    ],
)
def test_what_is_more_than_a_word_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(SojournError):
        Client(_access(**more))


def test_openssh_understands_it_and_the_key_is_private() -> None:
    client = Client(_access())
    [program, option, config, *_] = client.command(["true"])
    shown = subprocess.run(
        [program, option, config, "-G", "tpi-machine-1"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    assert (found["hostname"], found["user"]) == ("203.0.113.7", "ubuntu")
    assert found["stricthostkeychecking"] in ("true", "yes")
    assert (found["forwardagent"], found["batchmode"]) == ("no", "yes")
    assert stat.S_IMODE((client.folder / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(client.folder.stat().st_mode) == 0o700
    folder = client.folder
    del client
    assert not folder.exists()


def test_host_keys_are_of_this_machine_alone() -> None:
    client = Client(_access(host_keys=f"{_KEY} comment * evil"))
    assert (client.folder / "known_hosts").read_text() == f"tpi-machine-1 {_KEY}\n"
