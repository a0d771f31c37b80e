"""What the local cloud makes beside the scaler: the folder of the store."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sojourn.core.errors import Transient
from sojourn.host.folders import remove_empty

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.context import Context

__all__ = ["StoreFolder"]

_TRIES = 10


class StoreFolder:
    """The folder that is the task's store; for its owner's eyes only."""

    stage = 0

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root

    @property
    def title(self) -> str:
        return f"folder {self._folder}"

    def read(self, ctx: Context) -> bool:
        return self._folder.exists()

    def create(self, ctx: Context) -> None:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def delete(self, ctx: Context) -> None:
        for _ in range(_TRIES):  # somebody may be writing to it
            shutil.rmtree(self._folder, ignore_errors=True)
            if not self._folder.exists():
                break
        else:
            raise Transient(f"Could not remove {self.title}", hint="Check its permissions.")
        remove_empty(self._folder.parent, self._root.parent)
