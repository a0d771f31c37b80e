"""Calls of a machine to its cloud, which may be busy, or may not know its rights yet."""

from __future__ import annotations

import time
import urllib.error
from typing import TYPE_CHECKING

from sojourn.agent.background import say

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MARKING", "is_done"]

_TRIES = 10
MARKING = 3  # tries of what is of no use to the task itself


def is_done(what: str, do: Callable[[], object], tries: int = _TRIES) -> bool:
    """Try it until it is. If it never is, the machine's own timer and the cloud's limits remain."""
    for attempt in range(tries):
        try:
            do()
            return True
        except urllib.error.HTTPError as error:
            say(f"{what} failed: {error.read()[:500]!r}")
        except (OSError, ValueError, KeyError) as error:
            say(f"{what} failed: {error}")
        if attempt + 1 < tries:
            time.sleep(min(30, 2**attempt))
    return False
