"""Keeping the store up to date while the script runs: its log, its files, its lease."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from sojourn.agent.background import Chore, say
from sojourn.core.context import Context
from sojourn.core.errors import SojournError
from sojourn.storage import layout
from sojourn.storage.manifest import read_manifest
from sojourn.storage.snapshot import SnapshotWriter

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event

    from sojourn.agent.notice import Notice
    from sojourn.agent.telling import Telling
    from sojourn.core.filters import Filters
    from sojourn.storage.lease import Lease, Leases
    from sojourn.storage.logs import LogWriter
    from sojourn.storage.manifest import Manifest
    from sojourn.storage.store import Store

__all__ = ["Keeper", "LogSync", "Snapshots"]

_FRESH = 0.3  # seconds between segments while somebody follows
_IDLE = 10.0  # and while nobody does
_FOLLOWED_FOR = 30.0  # seconds that a sign of a follower counts
_WORKERS = 4  # each holds a chunk: a machine and its memory are for the script
_FOLLOWED_LOOK = 5.0  # seconds between looks whether somebody still follows
_SCAN_EVERY = 1.0  # seconds between looks for changes
_SCAN_SELDOM = 5.0  # and in a workdir in which nothing changed for a while
_SCAN_GROWTH = 1.25
_SCAN_SHARE = 20  # but looking may take one part in this many of the time
_TOLD_EVERY = 2.0  # seconds between words of how far restoring is


class LogSync:
    """Writes the log: often while somebody follows it, seldom otherwise."""

    def __init__(self, store: Store, log: LogWriter, look: float, telling: Telling) -> None:
        self._store = store
        self._log = log
        self._look = look
        self._sign: object = None
        self._looked = float("-inf")
        self._followed_until = float("-inf")
        self._flushed = float("-inf")
        self._chore = Chore("log", self._round, self._pause, telling.on_log)

    def start(self) -> None:
        self._chore.start()

    def stop(self) -> None:
        self._log.close()
        self._chore.stop()

    def _followed(self) -> bool:
        return time.monotonic() < self._followed_until

    def _pause(self, stopping: Event) -> None:
        if self._log.empty:  # whether anybody follows does not matter until something is printed
            self._log.wait(_IDLE, eager=True)
        self._look_for_followers()
        eager = self._followed()
        if eager:
            # A line that comes after a pause is written at once; a flood, a few times a second.
            stopping.wait(self._flushed + _FRESH - time.monotonic())
        self._log.wait(self._next_look(), eager=eager)

    def _round(self) -> None:
        due = time.monotonic() - self._flushed >= _IDLE
        if (self._followed() or due or self._log.full) and self._log.flush():
            self._flushed = time.monotonic()

    def _look_for_followers(self) -> None:
        now = time.monotonic()
        if now < self._looked + self._look_every():
            return
        self._looked = now
        try:
            sign = self._store.head(layout.FOLLOW)
        except SojournError:
            return  # writing the log will tell
        if sign is not None and sign != self._sign:
            self._sign = sign
            self._followed_until = now + _FOLLOWED_FOR

    def _look_every(self) -> float:
        return max(self._look, _FOLLOWED_LOOK) if self._followed() else self._look

    def _next_look(self) -> float:
        return max(0.0, self._looked + self._look_every() - time.monotonic())


class _Repeated:
    """What is done by a chore, again and again."""

    _chore: Chore

    def start(self) -> None:
        self._chore.start()

    def stop(self) -> None:
        self._chore.stop()

    def soon(self) -> None:
        """Something changed that others have to know."""
        self._chore.soon()


class Snapshots(_Repeated):
    """Stores the workdir whenever something in it changed, and the log before it.

    Whoever sees a snapshot finds in the log what was printed until then.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        log: LogWriter,
        workdir: Path,
        filters: Filters,
        every: float,
        notice: float,
        telling: Telling,
    ) -> None:
        self._store = store
        self._log = log
        self._notice = notice
        self._telling = telling
        self._lease = lease
        self._workdir = workdir
        self._filters = filters
        self._every = every
        self._scan_every = _SCAN_EVERY
        self._pause_next = _SCAN_EVERY
        self._told: set[str] = set()
        self.lost: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.kept: frozenset[int] = frozenset()  # snapshots that are not to be swept
        self._turn = threading.RLock()
        line = layout.data_prefix(lease.rank, lease.attempt)
        self._line = line
        self._writer = SnapshotWriter(
            store, line, base=layout.WORKDIR, workers=_WORKERS, strict=True
        )
        self._first = True
        self._chore = Chore("snapshot", self.take, self._pause, telling.on_files)

    def begin(self, restored: Manifest) -> None:
        """Go on from what was restored."""
        self._writer.begin(restored)

    def _pause(self, stopping: Event) -> None:
        stopping.wait(self._pause_next)

    def take(self, *, last: bool = False) -> None:
        """Store the workdir as it is now; `lost` tells what could not be, `left_out` what snapshots
        do not hold.

        `last`: nobody writes there any more.
        """
        with self._turn:
            self._take(last=last)

    def mark(self) -> int:
        """Store the workdir as it is now, changed or not; gives the number of its snapshot.

        Former attempts are left alone, see `forget_former`.
        """
        with self._turn:
            self._first = False
            self._take(always=True)
            return self._writer.number

    def path(self, number: int) -> str:
        """Where a snapshot of this attempt is."""
        return layout.snapshot_path(self._line, number)

    def _take(self, *, last: bool = False, always: bool = False) -> None:
        began = time.monotonic()
        self.lost, self.left_out = {}, {}
        changed = self._writer.take(
            Context(),
            self._workdir,
            self._filters,
            skipped=self._skipped,
            first=self._log.flush,
            last=last,
            always=always,
        )
        took = time.monotonic() - began
        longer = min(self._scan_every * _SCAN_GROWTH, _SCAN_SELDOM)
        self._scan_every = _SCAN_EVERY if changed else longer
        self._pause_next = max(self._every if changed else self._scan_every, took * _SCAN_SHARE)
        if changed:
            self._telling.on_snapshot(took, self._notice)
            self._writer.sweep(self.kept)
            if self._first:
                self.forget_former()

    def make_room(self) -> None:
        """Remove what was stored for a snapshot that did not come about, in a store that is full.

        The report has to fit in.
        """
        snapshots = self._store.list(layout.snapshots_prefix(self._line))
        used = {path for s in snapshots for path in read_manifest(self._store, s.path).objects}
        stored = self._store.list(layout.objects_prefix(self._line))
        self._store.delete([item.path for item in stored if item.path not in used])

    def forget_former(self) -> None:
        """What former attempts stored is not needed once this one has a snapshot of its own."""
        self._first = False
        own = self._lease.attempt
        found = self._store.list(layout.lines_prefix(self._lease.rank))
        paths = [item.path for item in found]
        former = [p for p in paths if own > (layout.attempt_of_data(p) or own)]
        # Manifests before objects: a reader must not find one whose objects are gone.
        for kind in ("/snapshots/", "/objects/"):
            self._store.delete([path for path in former if kind in path])

    def _skipped(self, path: str, reason: str, *, lost: bool = False) -> None:
        (self.lost if lost else self.left_out)[path] = reason
        if path not in self._told:
            self._told.add(path)
            say(f"not storing {path}: {reason}")


class Keeper(_Repeated):
    """Renews the lease; if another machine took over, ends this one."""

    def __init__(
        self, leases: Leases, lease: Lease, notice: Notice, ttl: float, telling: Telling
    ) -> None:
        self._leases = leases
        self._lease = lease
        self._notice = notice
        self._every = ttl / 4
        self._telling = telling
        self._chore = Chore("lease", self._renew, self._pause)

    def _pause(self, stopping: Event) -> None:
        restoring = self._telling.restoring is not None
        stopping.wait(min(self._every, _TOLD_EVERY) if restoring else self._every)

    def _renew(self) -> None:
        if not self._leases.renew(self._lease, self._telling.activity):
            self._notice.abandon("another machine took over")
