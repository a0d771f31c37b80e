"""The agent's luggage: a zip of all it needs, for each Python that a machine may have.

A machine has no internet access, so what it needs travels by way of the store. Wheels are fetched
once, by pip with the user's own settings, and kept in CACHE/sojourn/wheels, where CACHE is
$XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import MissingDependency, Transient
from sojourn.core.userfolders import cache_home

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PYTHONS", "WHEELS", "bundle", "fetch"]

WHEELS = "wheels"  # the folder of those in a bundle; they have to be unpacked too

PYTHONS = ("310", "311", "312", "313")
_NEEDED = ("blake3", "obstore")
_PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
_OURS = ("sojourn.agent", "sojourn.core", "sojourn.forges", "sojourn.storage")
_SUFFIXES = (".py", ".sh")
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same contents


def bundle(
    python: str,
    architecture: str,
    packages: Sequence[str] = (),
    wheels: Sequence[str] = _NEEDED,
) -> bytes:
    """The zip for a Python such as "312" on "x86_64" or "aarch64".

    `packages`: what else of ours runs on the machine, such as a cloud's own part. `wheels`: those
    that are needed there; a store that is a folder needs no obstore.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for wheel in _wheels(python, architecture):  # zips themselves
            if not wheel.name.startswith(tuple(wheels)):
                continue
            info = zipfile.ZipInfo(f"{WHEELS}/{wheel.name}", _MOMENT)
            target.writestr(info, wheel.read_bytes(), zipfile.ZIP_STORED)
        for path, data in _ours((*_OURS, *packages)):
            target.writestr(zipfile.ZipInfo(path, _MOMENT), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _ours(packages: Sequence[str]) -> list[tuple[str, bytes]]:
    """The files of packages, and those that make the packages they are in."""
    root = Path(__file__).parents[2]
    files: dict[Path, None] = {}  # each once, always in the same order
    for package in packages:
        folder = root.joinpath(*package.split("."))
        above = list(folder.relative_to(root).parents)[-2::-1]
        files |= dict.fromkeys(root / parent / "__init__.py" for parent in above)
        found = (path for path in folder.rglob("*") if path.suffix in _SUFFIXES)
        files |= dict.fromkeys(sorted(found))
    return [(path.relative_to(root).as_posix(), path.read_bytes()) for path in files]


@cache
def _wheels(python: str, architecture: str) -> list[Path]:
    return fetch(python, architecture, _cache())


def fetch(python: str, architecture: str, cache: Path) -> list[Path]:
    """The wheels for a Python on an architecture; those that are in the cache are not fetched."""
    folder = cache / f"{architecture}-{python}"
    found = _in(folder)
    if len(found) < len(_NEEDED):
        _download(python, architecture, folder)
        found = _in(folder)
    return found


def _in(folder: Path) -> list[Path]:
    return [wheel for name in _NEEDED for wheel in sorted(folder.glob(f"{name}-*.whl"))[-1:]]


def _download(python: str, architecture: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # What is in the cache is whole: it gets there when pip is done.
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        _run_pip(python, architecture, unfinished)
        for wheel in Path(unfinished).glob("*.whl"):
            wheel.replace(folder / wheel.name)


def _run_pip(python: str, architecture: str, folder: str) -> None:
    platforms = [f"--platform={name}_{architecture}" for name in _PLATFORMS]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", f"--python-version={python}", *platforms),
            *("--dest", folder, *_NEEDED),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named pip" in done.stderr:
        error = MissingDependency(
            "", f"{sys.executable} has no pip, required to download packages for machines"
        )
        error.hint = f"Run `{sys.executable} -m ensurepip` to install it."
        raise error
    if done.returncode:
        raise Transient(
            f"pip could not download the wheels for Python {python} on {architecture}: "
            f"{_last_lines(done.stderr)}",
            hint="Check your network and pip's settings (`pip config list`).",
        )


def _last_lines(text: str) -> str:
    return " ".join(text.strip().splitlines()[-2:])


def _cache() -> Path:
    return cache_home() / "sojourn" / "wheels"
