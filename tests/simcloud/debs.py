"""Fetch the SSH server of machines, before the tests run: `python -m tests.simcloud.debs FOLDER`.

Or their Podman: `... FOLDER podman`, Docker: `... FOLDER docker`, or Open MPI with the programs of
the HPC Challenge: `... FOLDER openmpi`. What this computer lacks for
it is unpacked into the folder, as a layer over /usr; nothing is installed. Without apt or a network
there is no such folder, and tests that need one are skipped: see `machines.ssh` and
`machines.containers`. What the packages are used for does not belong here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

# Of which program we need what package
PROGRAMS = {
    "bin/ssh-keygen": "openssh-client",
    "bin/sudo": "sudo",
    "lib/openssh/sftp-server": "openssh-sftp-server",
    "sbin/sshd": "openssh-server",
}
PODMAN = {
    "bin/busybox": "busybox-static",
    "bin/conmon": "conmon",
    "bin/crun": "crun",
    "bin/podman": "podman",
}
DOCKER = {
    "bin/busybox": "busybox-static",
    "bin/containerd": "containerd",
    "bin/containerd-shim-runc-v2": "containerd",
    "bin/docker": "docker.io",
    "sbin/dockerd": "docker.io",
    "sbin/runc": "runc",
}
OPENMPI = {"bin/hpcc": "hpcc", "bin/mpirun.openmpi": "openmpi-bin"}
_KINDS = {"SSH server": PROGRAMS, "docker": DOCKER, "openmpi": OPENMPI, "podman": PODMAN}
_USR = Path("/usr")
_MERGED = ("bin", "lib", "sbin")  # in some packages still beside /usr
_KEPT = ("bin", "lib", "libexec", "sbin", "share/openmpi")
_DROPPED = ("lib/systemd", "lib/sysusers.d", "lib/tmpfiles.d")  # machines have units of their own
_PATIENCE = 300.0


class FetchError(Exception):
    """The packages cannot be had here."""


def missing(*layers: Path, programs: Mapping[str, str] = PROGRAMS) -> list[str]:
    """The packages whose programs are in none of these folders, which are like /usr."""
    found = {
        package
        for program, package in programs.items()
        if not any((layer / program).exists() for layer in layers)
    }
    return sorted(found)


def fetch(packages: Sequence[str], folder: Path) -> None:
    """Unpack the packages, and those that they need and this computer does not have."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise FetchError("there is no apt here")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        unpacked = work / "unpacked"
        unpacked.mkdir()
        for deb in _download(packages, work):
            _run(["dpkg-deb", "--extract", str(deb), str(unpacked)], work)
        layer = _layer(unpacked, work / "layer")
        shutil.rmtree(folder, ignore_errors=True)
        layer.rename(folder)


def _download(packages: Sequence[str], work: Path) -> list[Path]:
    """Let apt choose: it knows which versions fit together, and to what is installed."""
    settings = {"Dir::Cache": work / "cache", "Debug::NoLocking": 1, "APT::Sandbox::User": "root"}
    for part in ("cache/archives/partial", "lists/partial"):
        (work / part).mkdir(parents=True)
    options = [f"--option={name}={value}" for name, value in settings.items()]
    install = ["install", "--yes", "--download-only", "--no-install-recommends", *packages]
    try:
        _run(["apt-get", *options, *install], work)
    except FetchError:
        # The lists of this computer may be old, or none; they are not ours to change.
        options.append(f"--option=Dir::State::Lists={work / 'lists'}")
        _run(["apt-get", *options, "update"], work)
        _run(["apt-get", *options, *install], work)
    return sorted((work / "cache" / "archives").glob("*.deb"))


def _layer(unpacked: Path, target: Path) -> Path:
    """What is below /usr and in use on a machine, without documents and the like."""
    for name in _KEPT:
        (target / name).mkdir(parents=True)
        for source in (unpacked / "usr" / name, unpacked / name):
            if source.is_dir() and (name in _MERGED or source.parent != unpacked):
                shutil.copytree(source, target / name, symlinks=True, dirs_exist_ok=True)
    for name in _DROPPED:
        shutil.rmtree(target / name, ignore_errors=True)
    return target


def _run(command: Sequence[str], temporary: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(temporary)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{command[0]} took too long") from None
    if done.returncode != 0:
        raise FetchError(f"{command[0]} failed: {done.stderr.strip()}")


def main(folder: Path, kind: str = "SSH server") -> None:
    """Set-up goes on without the packages: only few tests need them."""
    wanted = missing(_USR, programs=_KINDS[kind])
    if not wanted:
        return
    try:
        fetch(wanted, folder)
    except (FetchError, OSError) as error:
        said = f"Simulated machines have no {kind}, and tests of it are skipped: {error}"
        sys.stderr.write(f"{said}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])  # apt has another working folder
