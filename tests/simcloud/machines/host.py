"""Boots machines and clears up after them. What a cloud makes of machines does not belong here."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.simcloud.machines import cgroups, checks, image, kernel, leftovers, python, ssh
from tests.simcloud.machines.plan import BOOT_ID, CONSOLE, ROOT, WORK, WRITTEN, Plan, hear
from tests.simcloud.machines.running import Launched, RunningMachine
from tests.simcloud.machines.spec import Endpoint, MachineError, MachineSpec
from tests.simcloud.machines.units import USER_DATA
from tests.support.waiting import patience

_LAUNCHER = "tests.simcloud.machines.launcher"
_SOURCES = Path(__file__).parents[3]
_INIT = ("/usr/lib/systemd/systemd",)
_MADE_WITHIN = 60.0


class Host:
    """A computer that carries machines; a context manager. Needs root, see `unavailable`.

    The disks of machines are in memory: they may take up to half of it.
    """

    def __init__(
        self, parent: Path | None = None, interpreter: python.Interpreter | None = None
    ) -> None:
        """`parent` is where its folder goes, `interpreter` the Python of its machines."""
        parent = parent or Path(tempfile.gettempdir())
        interpreter = interpreter or python.find()
        assert interpreter is not None, "no Python for machines"
        leftovers.sweep(parent)
        self.name = leftovers.new_name()
        self._interpreter = interpreter
        self._folder = parent / self.name
        self._lock = threading.Condition()
        self._serial = itertools.count(1)
        self._machines: list[RunningMachine] = []
        self._booting = 0
        self._closed = False
        self.disks: list[Path] = []  # that were captured
        self.reachable: tuple[Endpoint, ...] = ()  # from all machines, beside their own endpoints
        self._folder.mkdir(mode=0o700)
        try:
            # Fast, and good for overlays whatever the folder above is on
            kernel.mount("tmpfs", str(self._folder), "tmpfs", 0, "mode=700")
            image.build(self._folder / "image", interpreter)
            ssh.install(self._folder / "image")
        except BaseException:
            leftovers.remove_folder(self._folder)
            raise

    @staticmethod
    def unavailable() -> str | None:
        """Why machines cannot run here and what to do about it, or None."""
        return checks.unavailable()

    @staticmethod
    def ssh_unavailable() -> str | None:
        """Why nobody can log in to machines here and what to do about it, or None."""
        return checks.unavailable() or ssh.unavailable()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def image(self) -> Path:
        """What its machines are made from; it can be changed until the first one boots."""
        return self._folder / "image"

    @property
    def machines(self) -> list[RunningMachine]:
        """All that were booted, in that order, also those that have ended."""
        with self._lock:
            return list(self._machines)

    def boot(self, spec: MachineSpec) -> RunningMachine:
        """Start a machine; when this returns, its endpoints answer and its init starts."""
        spec = replace(spec, endpoints=(*spec.endpoints, *self.reachable))
        return self._boot_in_turn(spec, None)

    def restart(self, machine: RunningMachine) -> RunningMachine:
        """Boot one that has ended, on its own disk. User-data runs again only if it is to."""
        return self._boot_in_turn(machine.spec, machine)

    def capture(self, machine: RunningMachine) -> Path:
        """What was written on a machine's disk up to now, for the disks of others."""
        with self._lock:
            target = self._folder / f"disk-{next(self._serial)}"
        target.mkdir()
        for name in ("root", "usr"):
            _copy(machine.folder / WRITTEN / name, target / name)
        self.disks.append(target)
        return target

    def close(self) -> None:
        """Kill all machines and remove all that there was of them."""
        with self._lock:
            self._closed = True
            self._lock.wait_for(lambda: not self._booting)
        machines = self.machines
        for machine in machines:
            machine.abandon()
        for machine in machines:
            machine.settle()
        leftovers.remove_folder(self._folder)

    def _boot_in_turn(self, spec: MachineSpec, former: RunningMachine | None) -> RunningMachine:
        with self._lock:
            if self._closed:
                raise MachineError(f"machine {spec.id} was not booted: the host is closed")
            number = next(self._serial)
            self._booting += 1
        machine = None
        try:
            machine = self._boot(spec, number, former)
        finally:
            with self._lock:
                self._booting -= 1
                self._machines += [machine] if machine else []
                self._lock.notify_all()
        return machine

    def _boot(
        self, spec: MachineSpec, number: int, former: RunningMachine | None
    ) -> RunningMachine:
        if former:
            address, folder = former.address, former.folder
            _forget(folder, spec.every_boot)
        else:
            own = f"10.83.{number // 250}.{number % 250 + 1}"
            address = spec.cable.address if spec.cable else own
            folder = self._folder / str(number)
            _lay_out(folder, spec, address)
            ssh.add_logins(self._folder / "image", folder / WRITTEN / "root", spec.logins)
        with ExitStack() as undo:
            cgroup = cgroups.create(f"{self.name}.{number}")
            undo.callback(cgroups.remove, cgroup)
            plan = Plan(
                folder=str(folder),
                cgroup=str(cgroup),
                hostname=spec.hostname or spec.id,
                address=address,
                cabled=spec.cable is not None,
                listen=tuple((each.address, each.port) for each in spec.endpoints),
                python=(self._interpreter.home, python.HOME) if self._interpreter.home else None,
                init=_INIT,
            )
            machine = RunningMachine(spec, address, _launch(plan, undo))
            undo.pop_all()
        return machine


def _lay_out(folder: Path, spec: MachineSpec, address: str) -> None:
    """Make the folder of the machine, with what it has for itself alone."""
    written = folder / WRITTEN
    if spec.disk:
        image.make_folder(folder, WRITTEN)
        for name in ("root", "usr"):
            _copy(spec.disk / name, written / name)
    for name in (f"{WRITTEN}/root", f"{WRITTEN}/usr", ROOT):
        image.make_folder(folder, name)
    _make_fleeting(folder)
    name = spec.hostname or spec.id
    hosts = {"localhost": "127.0.0.1", name: address, **spec.hosts}
    lines = "".join(f"{target} {each}\n" for each, target in hosts.items())
    image.put(written / "root", "etc/hosts", lines.encode())
    image.put(written / "root", "etc/hostname", f"{name}\n".encode())
    image.put(written / "root", "etc/machine-id", f"{uuid.uuid4().hex}\n".encode())
    if spec.certificates:
        bundle = image.AUTHORITIES.read_bytes() + b"\n" + spec.certificates
        image.put(written / "root", str(image.AUTHORITIES).strip("/"), bundle)
    for path, content in spec.files.items():
        image.put(written / "root", path, content, 0o600)
    script = spec.user_data
    if script.startswith(b"\x1f\x8b"):
        script = gzip.decompress(script)
    if script.startswith(b"#!"):
        image.put(written / "root", USER_DATA, script, 0o700)
    elif script:
        image.put(folder, CONSOLE, b"User-data is no script and was not run\n")


def _copy(source: Path, target: Path) -> None:
    """With owners, and with the marks of what is gone: devices, and attributes of folders."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _forget(folder: Path, keep_user_data: bool) -> None:
    """What a machine that is booted again has no more, or does not do again."""
    for name in (f"{WRITTEN}/run", f"{WRITTEN}/shm", WORK):
        shutil.rmtree(folder / name)
    if not keep_user_data:
        (folder / WRITTEN / "root" / USER_DATA).unlink(missing_ok=True)
    _make_fleeting(folder)


def _make_fleeting(folder: Path) -> None:
    """What lasts until the machine is booted again."""
    for name in ("root", "usr"):
        image.make_folder(folder, f"{WORK}/{name}")
    image.make_folder(folder / WRITTEN, "run/lock", 0o1777)
    image.make_folder(folder / WRITTEN, "shm", 0o1777)
    image.put(folder, BOOT_ID, f"{uuid.uuid4()}\n".encode())


def _launch(plan: Plan, undo: ExitStack) -> Launched:
    """Start the launcher and wait until the machine is made."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    undo.callback(control.close)
    with theirs:
        launcher = subprocess.Popen(
            [sys.executable, "-EsSBm", _LAUNCHER, str(theirs.fileno()), plan.dumps()],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            cwd=_SOURCES,
            env={"PATH": "/usr/sbin:/usr/bin"},
            start_new_session=True,
        )
    undo.callback(launcher.wait)
    undo.callback(control.close)
    control.settimeout(patience(_MADE_WITHIN))
    said: dict[str, Any] = {}
    fds: dict[str, list[int]] = {"pid": [], "made": []}
    undo.callback(_close, fds)
    while not said.keys() >= fds.keys():
        message, received = hear(control)
        said.update(message)
        for key in message.keys() & fds.keys():
            fds[key] += received
        if not message or message.keys() & {"failed", "ended"}:
            raise MachineError(f"the machine was not made: {said.get('failed', 'no reason known')}")
    control.settimeout(None)
    card = fds["made"].pop(0) if plan.cabled else None
    return Launched(
        launcher=launcher,
        control=control,
        pid1=said["pid"],
        pidfd=fds["pid"][0],
        card=card,
        listening=[socket.socket(fileno=fd) for fd in fds["made"]],
        folder=Path(plan.folder),
        cgroup=Path(plan.cgroup),
    )


def _close(fds: Mapping[str, list[int]]) -> None:
    for fd in itertools.chain(*fds.values()):
        os.close(fd)
