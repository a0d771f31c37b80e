"""Notices: this machine is about to go away."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from sojourn.agent.background import aside
from sojourn.core.flag import Flag

if TYPE_CHECKING:
    from types import FrameType

    from sojourn.agent.wakeup import Wakeup

__all__ = ["Notice"]


class Notice:
    """Set once, with a reason; whoever waits for it is woken.

    `abandon` means more: this machine was given up, and must not store anything any more.
    """

    def __init__(self, wakeup: Wakeup | None = None) -> None:
        self._set = Flag()
        self._wakeup = wakeup
        self.reason = ""
        self.abandoned = False

    def __bool__(self) -> bool:
        return self._set.is_set()

    @property
    def event(self) -> Flag:
        """To wait for."""
        return self._set

    def give(self, reason: str) -> None:
        """The machine goes away soon; a second notice changes nothing."""
        self.reason = self.reason or reason
        self._set.set()
        if self._wakeup:
            self._wakeup.wake()

    def abandon(self, reason: str) -> None:
        """The machine was given up already."""
        self.abandoned = True
        self.give(reason)

    def listen(self) -> None:
        """Take SIGTERM, SIGINT and SIGHUP as notices."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.give("the machine was interrupted")

    def watch_lifeline(self) -> None:
        """Take the end of standard input as a notice: whoever held it is gone."""
        aside("lifeline", self._read_lifeline)

    def _read_lifeline(self) -> None:
        while os.read(0, 1024):
            pass
        self.give("the machine's supervisor exited")
