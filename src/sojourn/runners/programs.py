"""Runner programs on this computer, to be put into a task's store."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.forges.http import download

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.runner import Program

__all__ = ["at_hand"]


@contextmanager
def at_hand(ctx: Context, programs: Mapping[str, Program]) -> Iterator[dict[str, Path]]:
    """Files of programs, checked, by their SHA-256, until the end of the block.

    Those for all architectures: which one a machine has is known when it is there.
    """
    if not programs:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="sojourn-programs-") as folder:
        files: dict[str, Path] = {}
        for program in programs.values():
            if program.sha256 not in files:
                name = program.url.rpartition("/")[2]
                with ctx.step(f"Downloading {name}"):
                    file = Path(folder) / str(len(files))
                    download(ctx, program.url, file, program.sha256)
                    files[program.sha256] = file
        yield files
