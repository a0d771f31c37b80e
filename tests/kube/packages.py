"""The programs of the system that a cluster needs, and what to do if they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["CNI", "install", "missing"]

CNI = Path("/usr/lib/cni")
_PROGRAMS = {
    "conntrack": "conntrack",
    "containerd": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nice": "coreutils",
    "runc": "runc",
    "unshare": "util-linux",
}


def missing() -> list[str]:
    """The Debian packages to install."""
    searched = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = {
        package for name, package in _PROGRAMS.items() if not shutil.which(name, path=searched)
    }
    if not (CNI / "bridge").exists():
        found.add("containernetworking-plugins")
    return sorted(found)


def install() -> None:
    """Install what is missing, if this is possible; otherwise say what it is."""
    packages = missing()
    if not packages:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise RuntimeError(f"Missing programs. Run as root: {' '.join(command)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"Could not install programs: {' '.join(command)}\n{done.stderr}")
