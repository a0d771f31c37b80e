"""Ranks and who carries them out, by conditional puts alone.

Attempt A of a rank begins when its object is created, which only one machine can do. It is over
when its report is created, which only one can do either: the machine itself, or another one that
saw it no longer renewing and reports it lost. So a rank has at most one live attempt that counts,
and a machine that was cut off for a while learns from the report that it was given up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.core.activity import Activity
from sojourn.core.clock import utc_now
from sojourn.core.report import Outcome, Report
from sojourn.core.status import RankRecord
from sojourn.storage import layout
from sojourn.storage.store import ObjectInfo, read_json

if TYPE_CHECKING:
    from collections.abc import Container

    from sojourn.storage.store import Store

__all__ = ["Lease", "Leases", "Mark", "read_records", "read_reports", "store_clock"]

_MARK_SIZE = 256  # bytes


@dataclass(frozen=True)
class Lease:
    """The right of a machine to carry out one attempt of a rank."""

    rank: int
    attempt: int


class Leases:
    """The leases of a task, as seen by one machine.

    `ttl`: seconds after which one that was not renewed may be taken over; `dead`: machines that
    are known to be gone, whose leases may be taken over at once. `rank`: the only one that this
    machine may carry out; -1: any.
    """

    def __init__(
        self,
        store: Store,
        machine: str,
        parallelism: int,
        *,
        ttl: float,
        dead: Container[str] = (),
        rank: int = -1,
    ) -> None:
        self._store = store
        self._machine = machine
        self._parallelism = parallelism
        self._ttl = timedelta(seconds=ttl)
        self._dead = dead
        self._ranks = range(parallelism) if rank < 0 else range(rank, rank + 1)
        self._began = ""

    def take(self, prefer: int = -1) -> Lease | None:
        """The first rank that nobody carries out; None if all are held or ended.

        `prefer`: the one to look at first.
        """
        attempts = _by_rank(self._store.list(layout.ATTEMPTS))
        reports = _by_rank(self._store.list(layout.REPORTS))
        for rank in sorted(self._ranks, key=lambda rank: rank != prefer):
            last = attempts.get(rank)
            attempt = last.attempt if last else 0
            if last and not self._is_over(rank, attempt, last, reports.get(rank)):
                continue
            self._began = utc_now()
            if self._store.put_new(layout.attempt_path(rank, attempt + 1), self._mark()):
                return Lease(rank, attempt + 1)
        return None

    def all_ended(self) -> bool:
        """Whether no rank is left to carry out for this machine, now or later."""
        records = read_records(self._store, self._parallelism)
        return all(records[rank].ended for rank in self._ranks)

    def renew(self, lease: Lease, activity: Activity | None = None) -> bool:
        """Tell that this machine is alive, and what it does; False if it was given up meanwhile."""
        if self._store.head(layout.report_path(lease.rank, lease.attempt)):
            return False
        self._store.put(layout.attempt_path(lease.rank, lease.attempt), self._mark(activity))
        return True

    def report(self, report: Report) -> bool:
        """End an attempt; False if it was given up, or ended otherwise, before."""
        data = json.dumps(report.to_dict()).encode()
        path = layout.report_path(report.rank, report.attempt)
        won = self._store.put_new(path, data)
        self._store.keep([path])
        return won

    def give_up(self, rank: int, outcome: Outcome, why: str) -> None:
        """End a rank for good, unless it has ended. Several may do so at once: one report counts.

        A machine that holds it but is late, or was lost a moment ago, is given up with it.
        """
        last = _by_rank(self._store.list(f"{layout.ATTEMPTS}/{rank:04}")).get(rank)
        report = _by_rank(self._store.list(f"{layout.REPORTS}/{rank:04}")).get(rank)
        attempt = last.attempt if last else 1
        if report and report.attempt >= attempt:
            if _read_report(self._store, report).outcome.final:
                return
            attempt = report.attempt + 1
        self._store.put_new(layout.attempt_path(rank, attempt), self._mark())
        self.report(Report(rank, attempt, outcome, why, ended=utc_now()))

    def _mark(self, activity: Activity | None = None) -> bytes:
        """Always of the same size: it is then written over, if a disk has no room for a new one."""
        mark: dict[str, object] = {"machine": self._machine}
        if self._began:
            mark["began"] = self._began
        if activity:
            mark["activity"] = activity.to_dict()
        return json.dumps(mark).encode().ljust(_MARK_SIZE)

    def _is_over(self, rank: int, attempt: int, last: _Named, report: _Named | None) -> bool:
        """Whether the next attempt may begin."""
        if report and report.attempt >= attempt:
            return not _read_report(self._store, report).outcome.final
        if _read_mark(self._store, last).machine in self._dead:
            why = "the machine was lost"
        elif self._silence(last.item) > self._ttl:
            why = "the machine stopped responding"
        else:
            return False
        return self.report(Report(rank, attempt, Outcome.LOST, why, ended=utc_now()))

    def _silence(self, last: ObjectInfo) -> timedelta:
        """How long it was not renewed; looked at after the clock, so that no wait counts."""
        now = store_clock(self._store, self._machine)
        info = self._store.head(last.path) or last
        return now - info.modified


def store_clock(store: Store, machine: str) -> datetime:
    """The time by the store's clock: that of this machine may be wrong."""
    path = layout.machine_path(machine)
    store.put(path, b"")
    info = store.head(path)
    return info.modified if info else datetime.now(timezone.utc)


def read_records(store: Store, parallelism: int) -> list[RankRecord]:
    """What the store knows of each rank."""
    attempts = _by_rank(store.list(layout.ATTEMPTS))
    reports = _by_rank(store.list(layout.REPORTS))
    records = []
    for rank in range(parallelism):
        last = attempts.get(rank)
        if not last:
            records.append(RankRecord(rank))
            continue
        found = reports.get(rank)
        over = found and found.attempt == last.attempt
        report = _read_report(store, found) if found and over else None
        mark = _read_mark(store, last)
        activity = None if report else mark.activity
        records.append(RankRecord(rank, last.attempt, mark.machine, report, activity, mark.began))
    return records


def read_reports(store: Store) -> list[Report]:
    """Of all attempts that are over, by rank and attempt."""
    return [_read_report(store, found) for found in _named(store.list(layout.REPORTS))]


class _Named(NamedTuple):
    """A lease or a report, and whose it is by its name."""

    rank: int
    attempt: int
    item: ObjectInfo


def _named(found: list[ObjectInfo]) -> list[_Named]:
    """A machine can write anything here; what is not named as we do does not count."""
    names = ((layout.attempt_of(item.path), item) for item in found)
    return [_Named(*name, item) for name, item in names if name]


def _by_rank(found: list[ObjectInfo]) -> dict[int, _Named]:
    """The newest of each rank: listings are sorted."""
    return {named.rank: named for named in _named(found)}


def _read_report(store: Store, named: _Named) -> Report:
    report = read_json(store, named.item.path, Report.from_dict)
    return replace(report, rank=named.rank, attempt=named.attempt)


class Mark(NamedTuple):
    """Which machine has a lease, what it does, and since when; "" if that was not written."""

    machine: str
    activity: Activity | None
    began: str

    @classmethod
    def from_dict(cls, data: Any) -> Mark:
        """Read one back."""
        activity = Activity.from_dict(data.get("activity"))
        return cls(str(data["machine"]), activity, str(data.get("began", "")))


def _read_mark(store: Store, named: _Named) -> Mark:
    return read_json(store, named.item.path, Mark.from_dict)
