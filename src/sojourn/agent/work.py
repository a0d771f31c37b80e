"""What an agent does: it takes a rank, and another one whenever its gang starts again."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from sojourn.agent.attempt import AGAIN, Attempt
from sojourn.agent.background import say
from sojourn.agent.config import GONE, RANK_ENDED, Config
from sojourn.agent.memory import give_back_memory
from sojourn.agent.notice import Notice
from sojourn.agent.process import adopt_orphans
from sojourn.agent.wakeup import Wakeup
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, NotFound, Transient
from sojourn.storage import layout
from sojourn.storage.data import load_task
from sojourn.storage.lease import Lease, Leases
from sojourn.storage.store import Store, StoreAddress, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from sojourn.agent.process import Launch
    from sojourn.core.task import Task

__all__ = ["Agent"]

_GONE_AFTER = 10.0  # seconds without a task, which a store may just not know yet
_SOON = 0.5  # seconds between the first looks for a rank


class Agent:
    """One machine's life: a rank is taken, carried out and reported.

    `store`: the task's, if the document's URL does not say it all. `launch`: how scripts are run,
    if not as a process of this one. `dead`: machines that are gone, if that can be asked at any
    time. `once`: this machine can run one script and no more. `unstored` is told the rank and the
    attempt of a script that has ended, while its results cannot be stored.
    """

    def __init__(
        self,
        config: Config,
        *,
        store: Store | None = None,
        launch: Launch | None = None,
        dead: Container[str] | None = None,
        once: bool = False,
        unstored: Callable[[int, int], None] | None = None,
    ) -> None:
        self._config = config
        self._store = store
        self._launch = launch
        self._run = 1
        self._once = once
        self._unstored = unstored
        self._dead: Container[str] = dead if dead is not None else frozenset(config.dead)
        self._began = time.monotonic()
        self._wakeup = Wakeup()
        self._notice = Notice(self._wakeup)

    @property
    def going(self) -> bool:
        """Whether it was told that the machine goes away."""
        return bool(self._notice)

    def run(self) -> int:
        """Live; returns the exit code that tells whether the machine is still needed."""
        give_back_memory()
        adopt_orphans()
        self._wakeup.on_signals(signal.SIGCHLD)
        self._notice.listen()
        if self._config.lifeline:
            self._notice.watch_lifeline()
        store = self._store or open_store(
            StoreAddress(self._config.store, self._config.store_options)
        )
        ctx = Context(cancelled=self._notice.event)
        try:
            task = self._load_task(ctx, store)
            if task is None:
                return RANK_ENDED
            self._run = layout.newest_run(store.list(layout.RUNS))
            leases = Leases(
                store,
                self._config.machine,
                task.parallelism,
                ttl=self._config.ttl,
                dead=self._dead,
                rank=self._config.rank,
            )
            return self._live(ctx, store, task, leases)
        except Cancelled:
            return GONE

    def _live(self, ctx: Context, store: Store, task: Task, leases: Leases) -> int:
        """Carry out a rank; in a gang, again and again, until it has ended for all."""
        rank = -1
        while True:
            lease = self._take(ctx, leases, rank)
            if lease is None:
                return RANK_ENDED
            attempt = Attempt(
                self._config, self._notice, self._wakeup, self._began, store, task, leases, lease
            )
            if self._launch:
                attempt.launch = self._launch
            attempt.unstored = self._unstored
            code = attempt.run()
            rank = lease.rank
            if code == RANK_ENDED and task.warm:
                again = self._next_run(ctx, store, task.warm)
                if again is None:
                    return RANK_ENDED
                task, self._began = again, time.monotonic()
                continue
            if code != AGAIN:
                return code
            if self._once or self._notice:
                return GONE

    def _next_run(self, ctx: Context, store: Store, seconds: float) -> Task | None:
        """Stay for another run; None if none began in time, or the machine goes away."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            try:
                newest = layout.newest_run(store.list(layout.RUNS))
                if newest > self._run:
                    self._run = newest
                    return load_task(store)
                ctx.sleep(self._config.look)
            except Cancelled:
                return None
            except (NotFound, Transient) as error:
                say(str(error))
                if isinstance(error, NotFound):
                    return None  # the task was deleted
        return None

    def _load_task(self, ctx: Context, store: Store) -> Task | None:
        """None if it was deleted: whoever comes next would find nothing to do either."""
        give_up = time.monotonic() + _GONE_AFTER
        while True:
            try:
                return load_task(store)
            except NotFound as error:
                say(str(error))
                if time.monotonic() > give_up:
                    say("the task was deleted")
                    return None
            ctx.sleep(1)

    def _take(self, ctx: Context, leases: Leases, prefer: int) -> Lease | None:
        """Whether a machine is gone is often known a moment later: at first, look again soon."""
        pause = _SOON
        while True:
            try:
                lease = leases.take(prefer)
                if lease is not None or leases.all_ended():
                    return lease
            except Transient as error:
                say(str(error))
            ctx.sleep(min(pause, self._config.look))
            pause *= 1.25
