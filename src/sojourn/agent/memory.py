"""Keeping the agent small: a machine's memory is for the script."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

__all__ = ["give_back_memory"]

_M_MMAP_THRESHOLD = -3
_LARGE = 512 << 10


def give_back_memory() -> None:
    """Have large blocks go back to the system as soon as they are free.

    Left alone, glibc takes the first large block that is freed as a reason to keep all later ones.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library, with ways of its own
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
