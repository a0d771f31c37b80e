"""The file system of a machine, put together in its own mount namespace by its first process.

The tree is an overlay over the host's image (see `image`), and /usr one over the host's /usr. Of
the host there is nothing else. What is in the image does not belong here.
"""

from __future__ import annotations

import glob
import os
import stat

from tests.simcloud.machines.kernel import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    bind,
    enter_root,
    mount,
)
from tests.simcloud.machines.plan import BOOT_ID, IMAGE, ROOT, WORK, WRITTEN, Plan

_QUIET = MS_NOSUID | MS_NODEV | MS_NOEXEC
_DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def enter(plan: Plan, console: str) -> None:
    """Make the file system and move into it; `console` is the terminal that is to be its console.

    The working folder is that of the machine, so that no path of the host is in the mount table.
    """
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    _overlay("root", f"{IMAGE}/root", ROOT)
    _overlay("usr", f"{IMAGE}/usr:/usr", f"{ROOT}/usr")
    bind(f"{WRITTEN}/run", f"{ROOT}/run")
    _proc()
    _sys()
    _dev(console)
    if plan.python:
        source, target = plan.python
        bind(source, ROOT + target, read_only=True)
        for packages in glob.glob(f"{ROOT}{target}/lib/python3.*/site-packages"):
            mount("tmpfs", packages, "tmpfs", MS_RDONLY)
    enter_root(ROOT)


def _overlay(layer: str, lower: str, target: str) -> None:
    options = f"lowerdir={lower},upperdir={WRITTEN}/{layer},workdir={WORK}/{layer},volatile"
    mount("overlay", target, "overlay", 0, options)


def _proc() -> None:
    """What a machine can see of its processes, and change of the kernel: nothing."""
    mount("proc", f"{ROOT}/proc", "proc", _QUIET)
    for path in (f"{ROOT}/proc/sys", f"{ROOT}/proc/sysrq-trigger"):
        if os.path.exists(path):
            bind(path, path, read_only=True)
    bind(BOOT_ID, f"{ROOT}/proc/sys/kernel/random/boot_id", read_only=True)


def _sys() -> None:
    mount("sysfs", f"{ROOT}/sys", "sysfs", _QUIET | MS_RDONLY)
    mount("cgroup2", f"{ROOT}/sys/fs/cgroup", "cgroup2", _QUIET)


def _dev(console: str) -> None:
    """No /dev/kmsg: the log of the host's kernel is not the machine's."""
    dev = f"{ROOT}/dev"
    mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=755,size=1m")
    for name, minor in _DEVICES.items():
        _node(f"{dev}/{name}", 1, minor)
    _node(f"{dev}/tty", 5, 0)
    for name, target in _LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts")
    mount("devpts", f"{dev}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666,gid=5")
    os.mkdir(f"{dev}/shm")
    bind(f"{WRITTEN}/shm", f"{dev}/shm")
    os.close(os.open(f"{dev}/console", os.O_CREAT, 0o600))
    bind(console, f"{dev}/console")


def _node(path: str, major: int, minor: int) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    os.chmod(path, 0o666)
