"""Whether machines can run on this computer, and if not, what to do about it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.simcloud.machines import cgroups, python

_PACKAGES = {
    "curl": "curl",
    "dbus-daemon": "dbus",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "shutdown": "systemd-sysv",
    "unshare": "util-linux",
}
_SYSTEMD = "/usr/lib/systemd/systemd"
_TRIAL = """\
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/root &&
mount -t overlay -o lowerdir=/usr,upperdir=/mnt/upper,workdir=/mnt/work,volatile none /mnt/root &&
mount -t proc none /mnt/root/lib && mount -t sysfs none /mnt/root/lib
"""


@functools.cache
def unavailable() -> str | None:
    """The reason why no machine can run here and how to change that, or None."""
    if not sys.platform.startswith("linux"):
        return "machines need Linux"
    if os.geteuid() != 0:
        return "machines need root: run the tests with sudo"
    if not os.path.islink("/bin") or not os.path.islink("/lib"):
        return "machines need a host with merged /usr, such as Debian 12 or Ubuntu 22.04"
    missing = {package for tool, package in _PACKAGES.items() if not _found(tool)}
    if not os.path.exists(_SYSTEMD):
        missing.add("systemd")
    if python.find() is None:
        missing.add("python3")
    if missing:
        return f"machines need programs that are missing: apt install {' '.join(sorted(missing))}"
    group = cgroups.hierarchy()
    if group is None or not os.access(group, os.W_OK) or os.statvfs(group).f_flag & os.ST_RDONLY:
        return "machines need a writable cgroup2 hierarchy: in a container, run it --privileged"
    if not os.path.exists("/dev/net/tun"):
        return "machines need /dev/net/tun, for their network: modprobe tun"
    return _trial()


def _found(tool: str) -> bool:
    return shutil.which(tool, path="/usr/sbin:/usr/bin") is not None


def _trial() -> str | None:
    namespaces = ("mount", "pid", "uts", "ipc", "net", "cgroup")
    done = subprocess.run(
        ["unshare", *(f"--{each}" for each in namespaces), "--fork", "sh", "-c", _TRIAL],
        capture_output=True,
        text=True,
        cwd=Path("/"),
    )
    if done.returncode == 0:
        return None
    return (
        f"machines need namespaces and overlayfs (Linux 5.10 or later; in a container, run it "
        f"--privileged): {done.stderr.strip()}"
    )
