"""Clouds: where tasks run. One folder a cloud, with the same file names in each.

What does not belong here: anything that more than one cloud needs. Adding a cloud adds a folder
and a line to `NAMES`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.interfaces import Cloud

__all__ = ["NAMES", "load", "not_set_up", "set_up"]

NAMES = ("aws", "local")


def load(name: str) -> Cloud:
    """The cloud of this name; its module, and so its SDK, is imported only now."""
    if name not in NAMES:
        import difflib  # only for those who mistyped it

        near = difflib.get_close_matches(name, NAMES, n=1)
        suggestion = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(
            "cloud", f"unknown cloud {name!r} (available: {', '.join(NAMES)}){suggestion}"
        )
    cloud: Cloud = import_module(f"sojourn.clouds.{name}").make_cloud()
    return cloud


def set_up() -> Iterator[Cloud]:
    """The clouds that this computer has credentials for, as far as a glance can tell.

    This computer comes first: whoever finds something here need not ask any other.
    """
    for name in sorted(NAMES, key=lambda name: name != "local"):
        if _is_set_up(name):
            yield load(name)


def not_set_up() -> list[str]:
    """The others: what is in them is not seen from here."""
    return [name for name in NAMES if not _is_set_up(name)]


def _is_set_up(name: str) -> bool:
    return bool(import_module(f"sojourn.clouds.{name}").is_set_up())
