"""Files of the store, for a machine that has nothing but Python yet."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from sojourn.clouds.az.on_machine import metadata

if TYPE_CHECKING:
    from sojourn.clouds.az.on_machine.settings import BootData

__all__ = ["fetch"]

_WITHIN = 120.0  # seconds
_VERSION = "2023-11-03"  # of the blob service


def fetch(settings: BootData, name: str) -> bytes:
    """A file that is there for machines to boot."""
    token = metadata.token("https://storage.azure.com/", settings["identity"])
    headers = {"Authorization": f"Bearer {token}", "x-ms-version": _VERSION}
    request = urllib.request.Request(settings["boot"] + name, headers=headers)
    with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
        content: bytes = answer.read()
    return content
