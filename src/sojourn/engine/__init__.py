"""The life cycle of a task on any cloud: order, retry, deadlines, failure without leaks.

What does not belong here: the name of a cloud, and words for people beyond events and errors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.engine import (
        again,
        answering,
        creation,
        gc,
        gitignore,
        home,
        imaging,
        ledger,
        lifecycle,
        observe,
        reaching,
        removal,
        results,
        revision,
        withdrawal,
    )

__all__ = [
    "again",
    "answering",
    "creation",
    "gc",
    "gitignore",
    "home",
    "imaging",
    "ledger",
    "lifecycle",
    "observe",
    "reaching",
    "removal",
    "results",
    "revision",
    "withdrawal",
]


def __getattr__(name: str) -> Any:
    """Load a part when it is first used: `sojourn list` without tasks needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'sojourn.engine' has no attribute {name!r}")
    return import_module(f"sojourn.engine.{name}")
