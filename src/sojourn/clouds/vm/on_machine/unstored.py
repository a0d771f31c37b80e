"""What an agent tells its machine: a script has ended, and its results cannot be stored yet."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["STORING", "tell"]

STORING = Path("/run/sojourn-storing")  # with rank and attempt; where no container's script writes


def tell(rank: int, attempt: int) -> None:
    """Leave it where `life` finds it; whole, or not at all."""
    unfinished = STORING.with_name(f"{STORING.name}-{os.getpid()}")
    unfinished.write_text(f"{rank} {attempt}")
    unfinished.rename(STORING)
