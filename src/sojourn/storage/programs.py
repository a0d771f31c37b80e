"""Programs that a laptop puts into a task's store, for machines that cannot fetch them elsewhere.

In pieces, so that neither side has all of it in memory.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sojourn.core.errors import IntegrityError
from sojourn.storage import layout

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.storage.store import Store

__all__ = ["put_program", "take_program"]

_PIECE = 8 << 20  # bytes


def put_program(ctx: Context, store: Store, sha256: str, file: Path) -> None:
    """Store a file under the SHA-256 that it has."""
    with file.open("rb") as source:
        number = 0
        while piece := source.read(_PIECE):
            ctx.check()
            store.put(layout.program_path(sha256, number), piece)
            number += 1


def take_program(store: Store, sha256: str, file: Path) -> bool:
    """Write the program of this SHA-256 to a file; False: it is not in the store."""
    pieces = store.list(layout.program_prefix(sha256))
    if not pieces:
        return False
    digest = hashlib.sha256()
    with file.open("wb") as target:
        for piece in pieces:
            data = store.get(piece.path)
            digest.update(data)
            target.write(data)
    if digest.hexdigest() != sha256:
        file.unlink()
        raise IntegrityError(f"the program in the store does not have SHA-256 {sha256}")
    return True
