"""Results that belong on another computer, for verbs that take tasks which nobody named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.api import Handle

__all__ = ["refuse_elsewhere", "refuse_homeless"]


def refuse_elsewhere(handle: Handle) -> None:
    """Refuse results that this computer has no folder for.

    A task of another computer may say the very path that is a folder here, too: each runner of a
    CI system has the same.
    """
    if _has_results(handle) and not handle.created_here():
        raise InvalidInput(
            "workdir",
            "on another computer, which created the task. "
            f"Run `sojourn delete {handle.id} --into FOLDER` to choose a folder here",
        )


def refuse_homeless(handle: Handle) -> None:
    """The same for results without a workdir, which belong to whichever folder is current."""
    if _has_results(handle) and not handle.task().storage.workdir:
        raise InvalidInput(
            "workdir",
            "not set, so the results have no folder to go to. "
            f"Run `sojourn delete {handle.id} --into FOLDER` to choose one",
        )
    refuse_elsewhere(handle)


def _has_results(handle: Handle) -> bool:
    try:
        return bool(handle.task().storage.output) and not handle.left_nothing()
    except NotFound:
        return False  # it was never completely created
