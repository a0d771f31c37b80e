"""What a cloud supplies for the life of its machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Group"]


class Group(Protocol):
    """This machine's group, as far as its rights let it do anything with it.

    What it cannot do, it says and leaves: the machine's own timer and the cloud's remain.
    """

    @property
    def machine(self) -> str:
        """The id by which the cloud knows this machine."""

    def denied(self) -> str:
        """What it is not allowed of what it needs to leave, as the cloud names it, found by asking
        for something that changes nothing. Empty: the cloud refused nothing."""

    def notice(self) -> str:
        """Why this machine is about to be taken away; empty: it is not. May raise OSError."""

    def warning(self) -> str:
        """What may happen to it soon, for the journal. May raise OSError."""

    def ask_for_time(self) -> None:
        """After a notice: the agent still stores its work."""

    def leave(self, *, for_good: bool, last: bool = False) -> None:
        """Take this machine out of the group; unless it is for good, another one comes.

        `last`: no rank is left, so that the group is not to try for any other machine either.
        """

    def mark(self, tags: Mapping[str, str]) -> None:
        """Tell of ranks, as `marks` has it, for those who list tasks; without it they look
        closer."""

    def put_off_deadline(self) -> None:
        """The time of the task starts anew with every boot of a machine, but not of the agent."""
