"""An identity of the user's for machines that lacks rights: found before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["lacking", "unchecked"]


def lacking(who: str, rights: Iterable[str], page: str) -> InvalidInput:
    """The error: machines could not work, or could not end by themselves."""
    return InvalidInput(
        "permission_set",
        f"{who} is not allowed {', '.join(rights)}, which machines need to store their work and "
        f"to end by themselves: without it, they cost money until you delete the task. Grant it; "
        f"{page} has all that it needs",
    )


def unchecked(who: str, why: str, rights: Iterable[str], page: str) -> str:
    """The warning: the cloud did not tell what the identity may do."""
    return (
        f"Could not check what {who} may do: {why}. If it is not allowed {', '.join(rights)}, "
        f"the first machine ends the task. {page} has all that it needs"
    )
