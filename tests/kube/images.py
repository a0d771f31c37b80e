"""The images that tests use, built from Debian's packages. No registry has a part in it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.kube import binaries, oci, places

__all__ = [
    "PAUSE",
    "PYTHON",
    "PYTHON_AS_USER",
    "SHELL",
    "SHELL_AS_USER",
    "UBUNTU",
    "WITH_ENTRYPOINT",
    "build",
    "built",
    "folder",
]

PAUSE = "localhost/pause:1"
PYTHON = "localhost/python:3.11"  # for the official one of this version
PYTHON_AS_USER = "localhost/python:3.11-user"
SHELL = "localhost/shell:1"  # BusyBox, and no Python
SHELL_AS_USER = "localhost/shell:user"
UBUNTU = "docker.io/library/ubuntu:24.04"  # what tasks have that choose none; has Python, too
WITH_ENTRYPOINT = "localhost/shell:entrypoint"

_RELEASE = "bookworm"
_USER = "1000"
# As the official image: pip and venv work, and nothing protects what the system has installed.
_PACKAGES = ("ca-certificates", "netbase", "python3", "python3-pip", "python3-venv", "tzdata")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/share/info/*")
_HOOK = (
    'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED && '
    'ln -s /usr/bin/python3 "$1"/usr/local/bin/python && '
    'ln -s /usr/bin/python3 "$1"/usr/local/bin/python3 && '
    'rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/*'
)
_ENTRYPOINT = ("/bin/sh", "-c", 'echo entered; exec "$@"', "entrypoint")


def folder() -> Path:
    """Its name says how the images are built; without it, they are not."""
    sources = [Path(__file__).read_bytes(), Path(oci.__file__).read_bytes()]
    return places.cache() / f"images-{places.digest([binaries.folder().name.encode(), *sources])}"


def built() -> Path | None:
    return folder() / "images.tar" if folder().exists() else None


def build() -> None:
    """All images into one file."""
    if built():
        return
    with places.building(folder()) as work:
        python, shell, pause = work / "python.tar", work / "shell.tar", work / "pause.tar"
        _write_python(python)
        _write_shell(shell, work)
        _write_root(pause, [("pause", (binaries.folder() / "pause").read_bytes())])
        oci.write(work / "images.tar", _images(python, shell, pause))
        for path in (python, shell, pause):
            path.unlink()


def _images(python: Path, shell: Path, pause: Path) -> list[oci.Image]:
    return [
        oci.Image(PAUSE, pause, entrypoint=("/pause",)),
        oci.Image(PYTHON, python, command=("python3",), environment=("LANG=C.UTF-8",)),
        oci.Image(PYTHON_AS_USER, python, command=("python3",), user=_USER),
        oci.Image(UBUNTU, python, command=("/bin/bash",)),
        oci.Image(SHELL, shell, command=("/bin/sh",)),
        oci.Image(SHELL_AS_USER, shell, command=("/bin/sh",), user=_USER),
        oci.Image(WITH_ENTRYPOINT, shell, entrypoint=_ENTRYPOINT, command=("true",)),
    ]


def _write_python(target: Path) -> None:
    _debian(
        target,
        "--variant=minbase",
        f"--include={','.join(_PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        f"--customize-hook={_HOOK}",
    )


def _write_shell(target: Path, work: Path) -> None:
    """BusyBox alone, under all of its names."""
    package = work / "package.tar"
    _debian(package, "--variant=extract", "--include=busybox-static")
    with tarfile.open(package) as tar:
        file = tar.extractfile("./bin/busybox")
        assert file is not None
        busybox = file.read()
    package.unlink()
    program = work / "busybox"
    program.write_bytes(busybox)
    program.chmod(0o755)
    names = subprocess.check_output([program, "--list"], text=True).split()
    program.unlink()
    _write_root(target, [("bin/busybox", busybox)], [f"bin/{name}" for name in names])


def _debian(target: Path, *options: str) -> None:
    command = ["mmdebstrap", "--quiet", *options, _RELEASE, str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Could not build an image: {' '.join(command)}\n{done.stderr}")


def _write_root(
    target: Path, programs: list[tuple[str, bytes]], links_to_busybox: Iterable[str] = ()
) -> None:
    with tarfile.open(target, "w") as tar:
        for name, mode in (("bin", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for name, data in programs:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
        for name in links_to_busybox:
            if name != "bin/busybox":
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
