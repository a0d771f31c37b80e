"""Patience with what was made a moment ago and is not known everywhere yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sojourn.core.errors import NotFound, SojournError, Transient

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.core.context import Context

__all__ = ["PATIENCE", "patiently", "pause", "until_known"]

T = TypeVar("T")

PATIENCE = 120.0  # seconds until what was made is known everywhere


def until_known(ctx: Context, look: Callable[[], T]) -> T:
    """What was just made may be unknown elsewhere for a moment."""
    return patiently(ctx, look, lambda error: isinstance(error, NotFound), every=0.5)


def patiently(
    ctx: Context,
    do: Callable[[], T],
    passes: Callable[[SojournError], bool],
    *,
    every: float = 1,
    within: float = PATIENCE,
) -> T:
    """Do it again for as long as what it fails of `passes`."""
    patience = ctx.within(within)
    while True:
        try:
            return do()
        except SojournError as error:
            if not passes(error):
                raise
            pause(patience, every, error)


def pause(patience: Context, seconds: float, error: SojournError) -> None:
    """Wait before the next try; when the patience is over, it is this error that counts."""
    try:
        patience.sleep(seconds)
    except Transient:
        raise error from error.__cause__
