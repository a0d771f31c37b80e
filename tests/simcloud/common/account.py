"""What a test can do to a simulated account of any cloud.

The cloud's own account inherits from this, makes what it needs in its constructor, and adds what
only it has. Methods that every cloud has are alike, so that contract kits are, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.simcloud.common.clock import Clock
from tests.simcloud.common.faults import Fault
from tests.simcloud.common.gate import Called, Gate
from tests.simcloud.common.market import Market
from tests.support.waiting import patience

Why = TypeVar("Why")


class SimAccount(Generic[Called, Why]):
    """Calls, faults, capacity and time."""

    def __init__(
        self, clock: Clock, changed: threading.Condition, market: Market[Why], gate: Gate[Called]
    ) -> None:
        self.market = market
        self._clock = clock
        self._changed = changed
        self._gate = gate

    # What was called, and what shall go wrong with calls

    @property
    def calls(self) -> list[Called]:
        """Every call since the list was last cleared, by the test; refused ones too."""
        return self._gate.calls

    def _fail(
        self,
        operation: str,
        error: Exception | None,
        *,
        nth: int = 1,
        after: bool = False,
        times: int = 1,
        who: str = "*",
    ) -> None:
        """See `fail` of the cloud."""
        with self._changed:
            self._gate.faults.add(Fault(operation, who, nth - 1, times, after, error))

    def throttle(self, operation: str = "*", *, times: int = 1, who: str = "*") -> None:
        """Have the next calls be refused for their rate, as each service puts it."""
        self._fail(operation, None, times=times, who=who)

    def heal(self) -> None:
        """Forget all faults that have not struck yet."""
        with self._changed:
            self._gate.faults.clear()

    def watch(self, tell: Callable[[Called], object]) -> None:
        """Have this called with every call as it comes in, before it has any effect."""
        self._gate.watching = tell

    def delay(self, seconds: float) -> None:
        """Have every call take this much longer."""
        self._gate.latency = seconds

    # What can be launched

    def capacity(self, instance_type: str | None, zone: str | None, available: bool | int) -> None:
        """Whether, or how many more, instances of a type can be had in a zone; None: of any."""
        with self._changed:
            self.market.set_capacity(instance_type, zone, available)
            self._changed.notify_all()

    def refuse(
        self,
        why: Why,
        *,
        instance_type: str | None = None,
        zone: str | None = None,
        times: int | None = None,
    ) -> None:
        """Have launches fail for this reason, until `allow`; None: any type, zone or number."""
        with self._changed:
            self.market.refuse(why, instance_type, zone, times)

    def allow(self) -> None:
        """Take back all refusals."""
        with self._changed:
            self.market.allow()

    # Time

    def advance(self, seconds: float) -> None:
        """Put the account's clock forward: what is scheduled happens and times run out."""
        with self._changed:
            self._clock.advance(seconds)
            self._changed.notify_all()

    def wait(self, happened: Callable[[], object], seconds: float = 30) -> None:
        """Return as soon as something about the account is so."""
        start = time.monotonic()
        with self._changed:
            while not happened():
                assert time.monotonic() < start + patience(seconds), "it did not happen in time"
                self._changed.wait(0.05)
