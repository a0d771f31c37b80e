"""What becomes of a task if whoever waits for it cannot go on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.core.errors import (
    Cancelled,
    CapacityError,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
)
from sojourn.engine import removal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud

__all__ = ["awaited"]

_FINAL = (CapacityError, InvalidInput, QuotaError)  # waiting does not help
_REMOVE_WITHIN = 15 * 60.0  # seconds


@contextmanager
def awaited(ctx: Context, cloud: Cloud, id: TaskId, *, keep: bool = False) -> Iterator[None]:
    """No error leaves the task behind without a word.

    If it can never run and never did, it is as a creation that failed: all of it is removed,
    unless it is to be kept. Else the hint says that it is there.
    """
    try:
        yield
    except (Cancelled, NotFound):
        raise
    except SojournError as error:
        if isinstance(error, _FINAL) and not keep and _withdrawn(ctx, cloud, id):
            error.hint = f"{error.hint}\nEverything created so far was removed.".strip()
        elif str(id) not in error.hint:
            error.hint = (
                f"{error.hint}\n{id} still exists. Run `sojourn status {id}` to see its state, "
                f"or `sojourn delete {id}` to delete it."
            ).strip()
        raise


def _withdrawn(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether nothing is left of it; a task that has begun stays, with what it did."""
    cleaning = ctx.shielded().within(_REMOVE_WITHIN)
    try:
        data = cloud.data(id)
        records = data.records(cleaning, data.load(cleaning).parallelism)
        if any(record.attempt for record in records):
            return False
        with cleaning.whole():
            removal.discard(cleaning, cloud, id)
    except (SojournError, OSError):
        return False
    return True
