"""Moments in the life of a command, at which something happens to it.

The provider is held still there by a real SIGSTOP, so that tests need no luck.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import patience, until
from tests.terraform.project import Project

# One file under many names: it takes disk and store once, but is read and hashed for each.
_BYTES = 16 << 20
_LONG = 64  # names: the upload takes long enough to be held in the middle
_ENDLESS = 8192  # names: it goes on until somebody breaks it off


def provider_of(terraform: subprocess.Popen[str]) -> int | None:
    """The provider that a command has running now."""
    for thread in Path(f"/proc/{terraform.pid}/task").glob("*/children"):
        try:
            children = thread.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            if b"sojourn.terraform" in _arguments(child):
                return child
    return None


def held(terraform: subprocess.Popen[str], happened: Callable[[], object]) -> int:
    """Stop the provider as soon as something has happened; returns its process."""
    give_up = time.monotonic() + patience(60)
    while not happened():
        assert terraform.poll() is None, terraform.communicate()
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.001)
    provider = provider_of(terraform)
    assert provider is not None
    _send(provider, signal.SIGSTOP)
    return provider


def caught(terraform: subprocess.Popen[str], happened: Callable[[], object]) -> int | None:
    """The same, shortly before a command ends; None if it has ended by then: try again."""
    give_up = time.monotonic() + patience(60)
    while not happened() and terraform.poll() is None:
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.001)
    provider = provider_of(terraform)
    if provider is None:
        return None
    with suppress(ProcessLookupError):
        os.kill(provider, signal.SIGSTOP)
        if terraform.poll() is None:
            return provider
        os.kill(provider, signal.SIGCONT)
    return None


def held_at_upload(project: Project, terraform: subprocess.Popen[str]) -> int:
    """Stop the provider in the middle of an upload, which has to be large."""
    provider = held(terraform, lambda: project.stored("store/workdir/objects/*"))
    assert project.stored("store/workdir/snapshots/*") == []
    return provider


def held_at_start(project: Project, terraform: subprocess.Popen[str]) -> int:
    """Stop the provider when machines are starting, mostly before Terraform has its answer."""
    provider = held(terraform, lambda: project.stored("scaler/supervisor.lock"))
    while not _supervised(project):
        go_on(provider)  # a bit further
        time.sleep(0.002)
        _send(provider, signal.SIGSTOP)
    return provider


def _supervised(project: Project) -> bool:
    [lock] = project.stored("scaler/supervisor.lock")
    for _ in range(20):
        if lock.read_text()[:1].isdecimal():
            return True
        time.sleep(0.05)
    return False


def go_on(provider: int) -> None:
    _send(provider, signal.SIGCONT)


def long_upload(work: Path) -> None:
    """Make a folder whose upload can be held, and ends soon if it goes on."""
    _make(work, _LONG)


def endless_upload(work: Path) -> None:
    """Make a folder whose upload lasts until it is broken off, however late that is noticed."""
    _make(work, _ENDLESS)


def _make(work: Path, names: int) -> None:
    work.mkdir()
    first = work / "0"
    first.write_bytes(os.urandom(_BYTES))
    for number in range(1, names):
        (work / str(number)).hardlink_to(first)


def end_the_upload(work: Path) -> None:
    """From now on the folder is uploaded at once."""
    for path in work.iterdir():
        path.unlink()


def ctrl_c(terraform: subprocess.Popen[str]) -> None:
    """What a terminal does: every process of the group gets it."""
    os.killpg(terraform.pid, signal.SIGINT)


def kill(process: int) -> None:
    _send(process, signal.SIGKILL)


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it may have ended
        os.kill(process, number)


def provider_ends(project: Project) -> None:
    until(lambda: not project.providers(), 60)


def _arguments(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
