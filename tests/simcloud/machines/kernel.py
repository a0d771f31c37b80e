"""The calls of Linux that the standard library of Python 3.10 does not have.

What they are used for does not belong here. They concern the whole calling thread or process, so
they are for processes of our own, not for the one that runs the tests. The exceptions are `mount`
and `unmount` on a folder of ours, and `set_namespace` in a thread that ends then.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def set_namespace(pidfd: int, kind: int) -> None:
    """Move this thread into the namespaces of a process; fails if the process has ended."""
    _check(_libc.setns(ctypes.c_int(pidfd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        os.fsencode(options),
    )
    _check(result, f"mount {kind or source} on {target}")


def bind(source: str, target: str, *, recursive: bool = False, read_only: bool = False) -> None:
    """Show `source` at `target` as well."""
    mount(source, target, "", MS_BIND | (MS_REC if recursive else 0))
    if read_only:
        mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY)


def unmount(target: str) -> None:
    """Take the mount out of sight; it goes with its last user."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(_MNT_DETACH)), f"unmount {target}")


def enter_root(folder: str) -> None:
    """Make the mount at `folder` the root of this mount namespace, and let go of the former one."""
    os.chdir(folder)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


def set_hostname(name: str) -> None:
    data = name.encode()
    _check(_libc.sethostname(data, ctypes.c_size_t(len(data))), "sethostname")


def die_with_parent(signal: int) -> None:
    """Get this signal when the thread that forked this process ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0), "prctl")


def drop_capability(number: int) -> None:
    """Nothing that this process executes can have the capability."""
    _check(_libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
