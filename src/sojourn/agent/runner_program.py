"""The program of a CI runner: from the store if a laptop put it there, else from its forge."""

from __future__ import annotations

import platform
import tarfile
from typing import TYPE_CHECKING

from sojourn.agent.disk import remove_tree
from sojourn.core.context import Context
from sojourn.core.errors import NotFound, Transient
from sojourn.forges.http import download
from sojourn.storage.programs import take_program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sojourn.core.runner import Program
    from sojourn.storage.store import Store

__all__ = ["fetch"]


def fetch(programs: Mapping[str, Program], folder: Path, store: Store) -> None:
    """The one for this machine, unpacked into a folder that is made for it."""
    found = programs.get(platform.machine())
    if found is None:
        known = ", ".join(programs) or "none"
        raise NotFound(f"there is none for {platform.machine()} (there is: {known})")
    remove_tree(folder)
    folder.mkdir(mode=0o755)
    file = folder / found.url.rpartition("/")[2]
    if not take_program(store, found.sha256, file):
        _download(found, file)
    if file.name.endswith((".tar.gz", ".tgz")):
        _unpack(file, folder)
        file.unlink()
    else:
        file.chmod(0o755)


def _download(found: Program, file: Path) -> None:
    try:
        download(Context(), found.url, file, found.sha256)
    except Transient as error:
        more = "set upload_program (--upload-program) if machines have no access to it"
        raise Transient(f"{error.message}; {more}") from error


def _unpack(file: Path, folder: Path) -> None:
    with tarfile.open(file) as archive:
        # Older Pythons have no filters, and need none here: it is the vendor's very file.
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = staticmethod(tarfile.data_filter)
        archive.extractall(folder)  # noqa: S202
