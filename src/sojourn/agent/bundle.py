"""The agent's luggage: a zip of all it needs, for each Python that a machine may have.

A machine has no internet access, so what it needs travels by way of the store. Wheels are fetched
once, see `wheels`, and kept in CACHE/sojourn/wheels, where CACHE is $XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.wheels import fetch, locked, pythons
from sojourn.core.userfolders import cache_home

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PYTHONS", "WHEELS", "bundle"]

WHEELS = "wheels"  # the folder of those in a bundle; they have to be unpacked too

PYTHONS = pythons()
_NEEDED = ("blake3", "obstore")
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
    """The files of packages, and empty ones for the packages that they are in.

    What these say is for your computer, and may import what no machine has.
    """
    root = Path(__file__).parents[2]
    folders = [root.joinpath(*package.split(".")) for package in packages]
    above = {parent for folder in folders for parent in folder.relative_to(root).parents}
    files = {f"{parent.as_posix()}/__init__.py": b"" for parent in sorted(above) if parent.name}
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES):
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    return list(files.items())


@cache
def _wheels(python: str, architecture: str) -> list[Path]:
    return fetch(locked(python, architecture), cache_home() / "sojourn" / "wheels")
