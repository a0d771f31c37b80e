"""The last minute of a machine that becomes an image: it forgets the task and who it was.

python3 -m sojourn.clouds.vm.on_machine.cleaning KEY... removes the agent, also its own files, and
what a machine makes when it first boots. KEYs are the public SSH keys of the task.

The agent is killed, not stopped: one that is stopped leaves its group, which then gets another
machine. A killed one says nothing, and the machine stays until somebody takes it away.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sojourn.storage.beneath import Beneath, is_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["forget", "without"]

_AGENT = "sojourn.service"
_UNITS = (_AGENT, "sojourn-end.timer")
# What clouds have on machines, and would write down again who this one is
_OF_CLOUDS = ("walinuxagent.service", "waagent.service")
_MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer")  # by `boot`
# In /run, which no image has. It has to be there before the agent is killed.
_STAYS_DEAD = Path("/run/systemd/system/sojourn.service.d/image.conf")
_DEAD_WITHIN = 30.0  # seconds
_GONE = (
    "opt/sojourn",
    "etc/systemd/system/sojourn*",
    "etc/systemd/system/*.wants/sojourn*",
    "etc/needrestart/conf.d/sojourn.conf",
    "etc/ssh/ssh_host_*",
    "var/lib/cloud/*",
    "var/lib/dbus/machine-id",
    "var/lib/dhcp/*",
    "var/lib/systemd/random-seed",
    "var/lib/waagent/*",
    "var/lib/systemd/credential.secret",
    "var/log/journal/*",
    "root/.*_history",
    "home/*/.*_history",
    "tmp/*",
    "tmp/.[!.]*",
    "var/tmp/*",
    "var/tmp/.[!.]*",
)
_HOMES = ("root", "home/*")
_KEYS = "authorized_keys"
_EMPTIED = ("etc/machine-id",)  # present and empty: the next boot makes a new one
_LOGS = "var/log"
_HOSTNAME, _HOSTS = "etc/hostname", "etc/hosts"  # each boot of a new machine sets them


def main() -> int:
    """Clean this machine; when it returns 0, its disk can be made an image."""
    _end_agent()
    _run("systemctl", "unmask", *_MASKED)
    for unit in _OF_CLOUDS:
        _run("systemctl", "stop", unit)
    if shutil.which("cloud-init"):
        _run("cloud-init", "clean", "--logs")
    forget(Path("/"), sys.argv[1:], socket.gethostname())
    os.sync()
    return 0


def _end_agent() -> None:
    _STAYS_DEAD.parent.mkdir(parents=True, exist_ok=True)
    _STAYS_DEAD.write_text("[Service]\nRestart=no\n")
    _run("systemctl", "disable", *_UNITS)
    _run("systemctl", "daemon-reload")
    _run("systemctl", "kill", "--signal=KILL", _AGENT)
    give_up = time.monotonic() + _DEAD_WITHIN
    while _run("systemctl", "is-active", "--quiet", _AGENT) == 0:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{_AGENT} was killed and did not end")
        time.sleep(0.1)


def forget(root: Path, keys: list[str], host: str) -> None:
    """Remove from a tree all that is of a task or of one machine alone.

    `host` is the machine's name, which some clouds take from the task's.
    """
    for pattern in _GONE:
        for path in _found(root, pattern):
            # What is mounted there is not on this disk, and none of ours.
            subprocess.run(["rm", "-rf", "--one-file-system", path], check=True)
    for pattern in _HOMES:
        for home in _found(root, pattern):
            _forget_keys(home, keys)
    if (root / _HOSTS).is_file():
        _rewrite(root / _HOSTS, [host])
    if (root / _HOSTNAME).is_file():
        (root / _HOSTNAME).write_text("localhost\n")
    for name in _EMPTIED:
        if (root / name).is_file():
            os.truncate(root / name, 0)
    if (root / _LOGS).is_dir():
        _empty(root / _LOGS)


def _forget_keys(home: str, keys: list[str]) -> None:
    """By root, in a folder of a user's: no symlink there is followed. Files stay theirs."""
    with Beneath(home) as there:
        try:
            names = os.listdir(there.folder(".ssh"))
        except OSError as error:
            if not is_elsewhere(error):
                raise
            return
        for name in names:
            if name.startswith(_KEYS):
                with _opened(there.folder(".ssh"), name) as file:
                    before = file.read() if file else b""
                    after = without(before, keys)
                    if file and after != before:
                        file.seek(0)
                        file.truncate()
                        file.write(after)


def _empty(logs: Path) -> None:
    """Some folders of logs belong to users that are not root."""
    with Beneath(logs) as there:
        for path, items in there.walk():
            for item in items:
                if item.is_file(follow_symlinks=False):
                    with _opened(there.folder(path), item.name) as file:
                        if file:
                            file.truncate(0)


@contextmanager
def _opened(folder: int, name: str) -> Iterator[BinaryIO | None]:
    """A file to read and write; None: whatever else has this name."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        found = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if not is_elsewhere(error) and error.errno not in (errno.EISDIR, errno.ENXIO):
            raise
        yield None
        return
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        yield None
        return
    with open(found, "r+b") as file:
        yield file


def _found(root: Path, pattern: str) -> list[str]:
    return glob.glob(f"{glob.escape(str(root).rstrip('/'))}/{pattern}")


def _rewrite(path: Path, words: list[str]) -> None:
    """In place: the file stays its user's."""
    before = path.read_bytes()
    after = without(before, words)
    if after != before:
        path.write_bytes(after)


def without(text: bytes, words: list[str]) -> bytes:
    """The lines that have none of these as a whole word."""
    unwanted = {word.encode() for word in words}
    lines = text.splitlines(keepends=True)
    return b"".join(line for line in lines if not unwanted & set(line.split()))


def _run(*command: str) -> int:
    """How it ended. What is not there to be disabled or masked is as it has to be."""
    return subprocess.run(command, check=False, capture_output=True).returncode


if __name__ == "__main__":
    sys.exit(main())
