"""The images of MPI: a program of Debian's with its SSH server, and mpi-operator under its name."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from tests.kube import mpi_operator, oci, places

__all__ = ["MPI", "MPI_AS_USER", "OPERATOR", "build", "built", "folder"]

# Open MPI, hpcc (with HPL in it), sshd on port 2222. mpi-operator's own images are like this.
MPI = "localhost/mpi:1"
MPI_AS_USER = "localhost/mpi:user"  # the same as mpiuser, 1000
OPERATOR = f"docker.io/mpioperator/mpi-operator:{mpi_operator.VERSION}"

_RELEASE = "bookworm"
_PACKAGES = ("hpcc", "openmpi-bin", "openssh-server")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/share/info/*")
_PORT = 2222
# Keys come in a Secret, whose files belong to root, and host keys with them or from the package.
_CLIENT = (
    f"Host *\\n Port {_PORT}\\n StrictHostKeyChecking no\\n UserKnownHostsFile /dev/null\\n"
    " LogLevel ERROR\\n"
)
_SERVER = f"Port {_PORT}\\nStrictModes no\\n"
_OF_USER = f"{_SERVER}PidFile /home/mpiuser/sshd.pid\\nHostKey /home/mpiuser/.ssh/id_rsa\\n"
_HOOK = (
    'chroot "$1" useradd --create-home --shell /bin/bash --uid 1000 mpiuser && '
    'mkdir -p "$1"/run/sshd && '
    f'printf "{_CLIENT}" > "$1"/etc/ssh/ssh_config.d/mpi.conf && '
    f'printf "{_SERVER}" > "$1"/etc/ssh/sshd_config.d/mpi.conf && '
    f'printf "{_OF_USER}" > "$1"/home/mpiuser/.sshd_config && '
    'rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/*'
)


def folder() -> Path:
    """Its name says how the images are built; without it, they are not."""
    sources = [Path(__file__).read_bytes(), Path(oci.__file__).read_bytes()]
    operator = mpi_operator.program().parent.name.encode()
    return places.cache() / f"mpi-images-{places.digest([operator, *sources])}"


def built() -> Path | None:
    return folder() / "images.tar" if folder().exists() else None


def build() -> None:
    """All images into one file."""
    if built():
        return
    with places.building(folder()) as work:
        mpi, operator = work / "mpi.tar", work / "operator.tar"
        _write_mpi(mpi)
        with tarfile.open(operator, "w") as tar:
            tar.add(mpi_operator.program(), "opt/mpi-operator")
        oci.write(
            work / "images.tar",
            [
                oci.Image(MPI, mpi, command=("/bin/bash",)),
                oci.Image(MPI_AS_USER, mpi, command=("/bin/bash",), user="1000"),
                oci.Image(OPERATOR, operator, entrypoint=("/opt/mpi-operator",)),
            ],
        )
        for path in (mpi, operator):
            path.unlink()


def _write_mpi(target: Path) -> None:
    command = [
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(_PACKAGES)}"),
        "--skip=cleanup/run",  # where sshd wants a folder
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        *(f"--customize-hook={_HOOK}", _RELEASE, str(target)),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Could not build an image: {' '.join(command)}\n{done.stderr}")
