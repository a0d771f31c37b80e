"""The public keys of this machine's SSH server, published through the store.

Whoever connects then knows that it is this machine.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.core.errors import SojournError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.storage.store import Store

__all__ = ["publish"]

_KEYS = Path("/etc/ssh")
_PATTERN = "ssh_host_*_key.pub"
_WITHIN = 600.0  # seconds; an image makes its keys when it first boots
_LOOK_EVERY = 1.0


def publish(open_store: Callable[[], Store], path: str) -> None:
    """Wait for the keys, and write them down. Without a server, there are none."""
    give_up = time.monotonic() + _WITHIN
    while time.monotonic() < give_up:
        found = [file.read_text() for file in sorted(_KEYS.glob(_PATTERN))]
        if found and all(text.endswith("\n") for text in found):
            try:
                open_store().put(path, "".join(found).encode())
                return
            except SojournError as error:
                say(f"could not publish the SSH keys: {error}")
        time.sleep(_LOOK_EVERY)
