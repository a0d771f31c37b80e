"""Files that tell others on this computer whether a client is there, and asks for anything."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ASKED", "CONNECTED", "Signs"]

CONNECTED = "connected"  # touched while a client is there, even if it only says so
ASKED = "asked"  # touched while it asks for something, or is sent something

_EVERY = 1.0  # seconds


class Signs:
    """Touches them, now and then. Without a folder, it does nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._touched: dict[str, float] = {}

    def touch(self, name: str) -> None:
        if self._folder is None:
            return
        now = time.monotonic()
        if now - self._touched.get(name, -_EVERY) >= _EVERY:
            self._touched[name] = now
            with suppress(OSError):
                (self._folder / name).touch()
