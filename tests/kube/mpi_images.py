"""The images of MPI: a program of Debian's with its SSH server, and mpi-operator under its name."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.kube import mpi_operator, oci, places

__all__ = ["INTEL", "MPI", "MPI_AS_USER", "OPERATOR", "OTHERS", "build", "built", "folder"]

# Open MPI, hpcc (with HPL in it), sshd on port 2222. mpi-operator's own images are like this.
MPI = "localhost/mpi:1"
MPI_AS_USER = "localhost/mpi:user"  # the same as mpiuser, 1000
OTHERS = "localhost/mpi:2"  # Open MPI 5, MPICH and Intel MPI, and mpi4py for each of them
INTEL = Path("/opt/intel")  # where it is in that image
OPERATOR = f"docker.io/mpioperator/mpi-operator:{mpi_operator.VERSION}"

_PACKAGES = {
    "bookworm": ("hpcc", "openmpi-bin", "openssh-server"),
    "trixie": ("hpcc", "mpich", "openmpi-bin", "openssh-server", "python3"),
}
_WHEELS = Path(__file__).with_name("mpi-wheels.txt")
_PYTHON = "3.13"  # of trixie
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/share/info/*")
_OF_WHEELS = (
    "PYTHONPATH=/opt/python",
    f"FI_PROVIDER_PATH={INTEL}/lib",  # where Intel's libfabric has its parts
    f"I_MPI_ROOT={INTEL}",
)
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
    sources = [path.read_bytes() for path in (Path(__file__), _WHEELS, Path(oci.__file__))]
    operator = mpi_operator.program().parent.name.encode()
    return places.cache() / f"mpi-images-{places.digest([operator, *sources])}"


def built() -> Path | None:
    return folder() / "images.tar" if folder().exists() else None


def build() -> None:
    """All images into one file."""
    if built():
        return
    with places.building(folder()) as work:
        mpi, others, operator = (work / f"{name}.tar" for name in ("mpi", "others", "operator"))
        _write_mpi(mpi, "bookworm")
        _unpack_wheels(work / "opt")
        _write_mpi(others, "trixie", f"--customize-hook=copy-in {work / 'opt'} /")
        shutil.rmtree(work / "opt")
        with tarfile.open(operator, "w") as tar:
            tar.add(mpi_operator.program(), "opt/mpi-operator")
        oci.write(
            work / "images.tar",
            [
                oci.Image(MPI, mpi, command=("/bin/bash",)),
                oci.Image(MPI_AS_USER, mpi, command=("/bin/bash",), user="1000"),
                oci.Image(OTHERS, others, command=("/bin/bash",), environment=_OF_WHEELS),
                oci.Image(OPERATOR, operator, entrypoint=("/opt/mpi-operator",)),
            ],
        )
        for path in (mpi, others, operator):
            path.unlink()


def _unpack_wheels(target: Path) -> None:
    """Intel MPI as it is in its own folder elsewhere, and a folder for Python."""
    with tempfile.TemporaryDirectory() as name:
        wheels = Path(name)
        _run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", name),
                *("--no-deps", "--only-binary=:all:", f"--python-version={_PYTHON}"),
                *("--require-hashes", "--requirement", str(_WHEELS)),
            ]
        )
        for wheel in wheels.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(wheels)
        for data in wheels.glob("impi_rt-*.data/data"):
            for program in (data / "bin").iterdir():
                program.chmod(0o755)
            shutil.copytree(data, target / INTEL.name)
        shutil.copytree(wheels / "mpi4py", target / "python" / "mpi4py")


def _write_mpi(target: Path, release: str, *more: str) -> None:
    included = ",".join(_PACKAGES[release])
    command = [
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={included}"),
        "--skip=cleanup/run",  # where sshd wants a folder
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        *(f"--customize-hook={_HOOK}", *more, release, str(target)),
    ]
    _run(command)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Could not build an image: {' '.join(command)}\n{done.stderr}")
