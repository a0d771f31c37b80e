"""Files of the store, for a machine that has nothing but Python yet."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from sojourn.clouds.gcp.on_machine import metadata

if TYPE_CHECKING:
    from sojourn.clouds.vm.on_machine.settings import BootData

__all__ = ["fetch"]

_WITHIN = 120.0  # seconds


def fetch(settings: BootData, name: str) -> bytes:
    """A file that is there for machines to boot."""
    request = metadata.authorized("GET", settings["boot"] + name)
    with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
        content: bytes = answer.read()
    return content
