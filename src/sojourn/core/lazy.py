"""Modules that others import and hardly use: loaded when something of them is asked for."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["lazily"]


class _StandIn(ModuleType):
    """Has the name of a module, and loads it when its first attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def lazily(*names: str, **ready: Any) -> Iterator[None]:
    """Let what is imported meanwhile have these modules without loading them.

    For start-up time only. Whoever imports them afterwards gets the modules themselves. `ready`
    are attributes that can be had without loading anything.
    """
    for name in names:
        stand_in = _StandIn(name)
        vars(stand_in).update(ready)
        sys.modules.setdefault(name, stand_in)
    try:
        yield
    finally:
        for name in names:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]
