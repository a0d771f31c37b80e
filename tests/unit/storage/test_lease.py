from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.clock import utc_now
from sojourn.core.errors import IntegrityError
from sojourn.core.report import Outcome, Report
from sojourn.storage import layout
from sojourn.storage.lease import Lease, Leases, read_records, read_reports
from sojourn.storage.store import Buffer, ObjectInfo, Store, open_store
from tests.support.faults import WatchedStore, memory_store
from tests.support.seaweed import Seaweed

TTL = 60.0


class Clocked(WatchedStore):
    """A store whose clock is turned by hand."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.now = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self.before_put: Callable[[str], None] = lambda path: None
        self._times: dict[str, datetime] = {}

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def put(self, path: str, data: Buffer) -> None:
        self.before_put(path)
        super().put(path, data)
        self._times[path] = self.now

    def put_new(self, path: str, data: Buffer) -> bool:
        won = super().put_new(path, data)
        if won:
            self._times[path] = self.now
        return won

    def head(self, path: str) -> ObjectInfo | None:
        info = super().head(path)
        return info and info._replace(modified=self._times.get(path, self.now))

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        found = super().list(prefix, after)
        return [item._replace(modified=self._times.get(item.path, self.now)) for item in found]


@pytest.fixture
def store() -> Clocked:
    return Clocked(memory_store())


def leases(store: Store, machine: str, ranks: int = 1, dead: tuple[str, ...] = ()) -> Leases:
    return Leases(store, machine, ranks, ttl=TTL, dead=dead)


def ended(lease: Lease, outcome: Outcome = Outcome.SUCCEEDED, reason: str = "") -> Report:
    return Report(lease.rank, lease.attempt, outcome, reason, ended=utc_now())


def test_ranks_are_taken_in_order_until_none_is_left(store: Clocked) -> None:
    taken = [leases(store, f"m{number}", 3).take() for number in range(4)]
    assert taken == [Lease(0, 1), Lease(1, 1), Lease(2, 1), None]


@pytest.mark.parametrize(("machines", "ranks"), [(12, 5), (5, 5), (3, 5), (16, 1)])
def test_racing_machines_get_each_rank_once(machines: int, ranks: int) -> None:
    store = memory_store()
    start = threading.Barrier(machines)

    def race(number: int) -> Lease | None:
        mine = leases(store, f"m{number}", ranks)
        start.wait()
        return mine.take()

    with ThreadPoolExecutor(machines) as pool:
        taken = [lease for lease in pool.map(race, range(machines)) if lease]
    assert len(set(taken)) == len(taken) == min(machines, ranks)
    assert {lease.attempt for lease in taken} == {1}


def test_machines_racing_on_s3_get_each_rank_once(seaweed: Seaweed) -> None:
    address = seaweed.address()
    start = threading.Barrier(8)

    def race(number: int) -> Lease | None:
        mine = leases(open_store(address), f"m{number}", 3)
        start.wait()
        return mine.take()

    with ThreadPoolExecutor(8) as pool:
        taken = [lease for lease in pool.map(race, range(8)) if lease]
    assert sorted(lease.rank for lease in taken) == [0, 1, 2]


def test_machines_racing_to_take_over_get_each_rank_once(store: Clocked) -> None:
    for rank in range(3):
        assert leases(store, f"old{rank}", 3).take() == Lease(rank, 1)
    store.later(TTL + 1)
    start = threading.Barrier(10)

    def race(number: int) -> list[Lease]:
        mine = leases(store, f"m{number}", 3)
        start.wait()
        return [lease for _ in range(3) if (lease := mine.take())]

    with ThreadPoolExecutor(10) as pool:
        taken = [lease for found in pool.map(race, range(10)) for lease in found]
    assert sorted((lease.rank, lease.attempt) for lease in taken) == [(0, 2), (1, 2), (2, 2)]
    assert [report.outcome for report in read_reports(store)] == [Outcome.LOST] * 3


def test_a_live_lease_is_never_taken_over(store: Clocked) -> None:
    mine, other = leases(store, "mine"), leases(store, "other")
    lease = mine.take()
    assert lease
    for _ in range(10):
        store.later(TTL - 1)
        assert other.take() is None
        assert mine.renew(lease)
        assert other.take() is None


def test_a_silent_lease_is_taken_over_after_its_time_and_the_machine_learns_of_it(
    store: Clocked,
) -> None:
    mine, other = leases(store, "mine"), leases(store, "other")
    lease = mine.take()
    assert lease == Lease(0, 1)
    store.later(TTL)
    assert other.take() is None
    store.later(1)
    assert other.take() == Lease(0, 2)
    assert not mine.renew(lease)
    assert not mine.report(ended(lease))
    (record,) = read_records(store, 1)
    assert (record.attempt, record.machine, record.report) == (2, "other", None)


def test_a_machine_that_renews_while_another_looks_is_not_given_up(store: Clocked) -> None:
    """Between the listing and the verdict of the other one, minutes may pass."""
    mine, other = leases(store, "mine"), leases(store, "other")
    lease = mine.take()
    assert lease

    def wait(path: str) -> None:
        if path.startswith("machines/"):
            store.before_put = lambda path: None
            for _ in range(5):
                store.later(TTL - 1)
                assert mine.renew(lease)

    store.before_put = wait
    assert other.take() is None
    assert mine.renew(lease)


def test_a_lease_of_a_dead_machine_is_taken_over_at_once(store: Clocked) -> None:
    mine = leases(store, "mine")
    lease = mine.take()
    assert lease
    assert leases(store, "other", dead=("somebody",)).take() is None
    assert leases(store, "other", dead=("mine",)).take() == Lease(0, 2)
    assert not mine.renew(lease)
    assert read_reports(store)[0].reason == "the machine was lost"


def test_the_dead_are_only_those_who_hold_the_last_attempt(store: Clocked) -> None:
    leases(store, "first").take()
    assert leases(store, "second", dead=("first",)).take() == Lease(0, 2)
    assert leases(store, "third", dead=("first",)).take() is None


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT])
def test_a_final_report_ends_a_rank(store: Clocked, outcome: Outcome) -> None:
    mine = leases(store, "mine")
    lease = mine.take()
    assert lease
    assert not mine.all_ended()
    assert mine.report(ended(lease, outcome))
    assert mine.all_ended()
    store.later(10 * TTL)
    assert leases(store, "other", dead=("mine",)).take() is None
    assert not mine.renew(lease)


@pytest.mark.parametrize("outcome", [Outcome.PREEMPTED, Outcome.LOST])
def test_another_attempt_follows_at_once_what_was_not_the_scripts_doing(
    store: Clocked, outcome: Outcome
) -> None:
    mine = leases(store, "mine")
    lease = mine.take()
    assert lease
    assert mine.report(ended(lease, outcome))
    assert not mine.all_ended()
    assert leases(store, "other").take() == Lease(0, 2)


def test_a_report_is_final_in_its_first_version(store: Clocked) -> None:
    mine = leases(store, "mine")
    lease = mine.take()
    assert lease
    report = ended(lease, Outcome.FAILED, "first")
    assert mine.report(report)
    assert mine.report(report)  # a repeat after a lost answer
    assert not mine.report(ended(lease, Outcome.SUCCEEDED, "second"))
    assert read_reports(store) == [report]


GIVEN_UP = (Outcome.FAILED, "nobody came")


def test_a_rank_that_several_machines_give_up_at_once_has_one_report(store: Clocked) -> None:
    start = threading.Barrier(8)

    def race(number: int) -> None:
        start.wait()
        leases(store, f"m{number}").give_up(0, *GIVEN_UP)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(race, range(8)))
    assert [(r.attempt, r.outcome, r.reason) for r in read_reports(store)] == [(1, *GIVEN_UP)]
    assert leases(store, "m").all_ended()


def test_a_rank_is_given_up_by_one_between_what_another_looks_at(store: Clocked) -> None:
    """Each sees the other's attempt, and its report not yet."""
    first, second = leases(store, "m1"), leases(store, "m2")
    put_new = store.put_new
    turns = [lambda: second.give_up(0, *GIVEN_UP)]

    def interrupted(path: str, data: Buffer) -> bool:
        won = put_new(path, data)
        if turns:
            turns.pop()()
        return won

    store.put_new = interrupted  # type: ignore[method-assign]
    first.give_up(0, *GIVEN_UP)
    assert [report.attempt for report in read_reports(store)] == [1]


def test_a_machine_that_is_late_learns_that_its_rank_was_given_up(store: Clocked) -> None:
    late = leases(store, "late")
    lease = late.take()
    assert lease == Lease(0, 1)
    leases(store, "m").give_up(0, *GIVEN_UP)
    assert not late.renew(lease)
    assert not late.report(ended(lease))
    assert [(r.attempt, r.outcome) for r in read_reports(store)] == [(1, Outcome.FAILED)]


def test_a_rank_whose_machine_was_lost_is_given_up_in_another_attempt(store: Clocked) -> None:
    lost = leases(store, "lost")
    lease = lost.take()
    assert lease
    lost.report(ended(lease, Outcome.LOST))
    for _ in range(2):
        leases(store, "m").give_up(0, *GIVEN_UP)
    assert [r.outcome for r in read_reports(store)] == [Outcome.LOST, Outcome.FAILED]


def test_all_ended_needs_every_rank(store: Clocked) -> None:
    mine = leases(store, "mine", 2)
    for _ in range(2):
        assert not mine.all_ended()
        lease = mine.take()
        assert lease
        mine.report(ended(lease))
    assert mine.all_ended()


def test_records_of_nothing(store: Clocked) -> None:
    assert [(r.rank, r.attempt, r.report) for r in read_records(store, 2)] == [
        (0, 0, None),
        (1, 0, None),
    ]
    assert read_reports(store) == []


def test_reports_come_by_rank_and_attempt(store: Clocked) -> None:
    mine = leases(store, "mine", 12)
    for rank, attempt in [(11, 1), (2, 10), (2, 9), (0, 1)]:
        mine.report(Report(rank, attempt, Outcome.PREEMPTED, ""))
    assert [(r.rank, r.attempt) for r in read_reports(store)] == [(0, 1), (2, 9), (2, 10), (11, 1)]


def test_ranks_and_attempts_of_many_digits_sort_as_numbers(store: Clocked) -> None:
    mine = leases(store, "mine")
    for attempt in range(1, 12):
        assert mine.take() == Lease(0, attempt)
        mine.report(Report(0, attempt, Outcome.PREEMPTED, ""))
    assert layout.attempt_of(layout.attempt_path(7, 123)) == (7, 123)


ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["take", "renew", "end", "lose", "wait", "sleep"])
    ),
    max_size=40,
)


@settings(max_examples=80)
@given(ACTIONS)
def test_at_most_one_live_attempt_of_a_rank_counts(actions: list[tuple[int, str]]) -> None:
    store = Clocked(memory_store())
    ranks = 2
    machines = [leases(store, f"m{number}", ranks) for number in range(4)]
    held: dict[int, Lease] = {}
    renewed: dict[int, datetime] = {}
    for number, action in actions:
        lease = held.get(number)
        if action == "take" and lease is None:
            taken = machines[number].take()
            if taken:
                for other, theirs in held.items():
                    if theirs.rank == taken.rank:
                        assert store.now - renewed[other] > timedelta(seconds=TTL)
                        assert not machines[other].renew(theirs)
                held[number] = taken
                renewed[number] = store.now
        elif action == "renew" and lease:
            if machines[number].renew(lease):
                renewed[number] = store.now
            else:
                del held[number]
        elif action in ("end", "lose") and lease:
            outcome = Outcome.SUCCEEDED if action == "end" else Outcome.PREEMPTED
            machines[number].report(ended(lease, outcome))
            del held[number]
        elif action == "wait":
            store.later(TTL / 3)
        elif action == "sleep":
            store.later(TTL * 2)
        finals = [report.rank for report in read_reports(store) if report.outcome.final]
        assert len(finals) == len(set(finals))


_JUNK = ("junk", "0000/junk", "x/000001", "0000/000001/deep", "00000/000001", "0000/²00001")


def test_names_that_are_not_ours_do_not_count(store: Clocked) -> None:
    """A machine can write anything there."""
    lease = leases(store, "m1").take()
    assert lease == Lease(0, 1)
    for top in (layout.ATTEMPTS, layout.REPORTS):
        for name in (*_JUNK, "0009/000001"):
            if name != "0000/000001/deep" or top == layout.REPORTS:
                store.put(f"{top}/{name}", b'{"machine": "x"}')
    [record] = read_records(store, 1)
    assert (record.attempt, record.machine, record.report) == (1, "m1", None)
    assert leases(store, "m2").take() is None


def test_a_report_is_of_the_attempt_that_its_name_says(store: Clocked) -> None:
    lie = Report(7, 7, Outcome.SUCCEEDED, "")
    store.put(layout.report_path(0, 1), json.dumps(lie.to_dict()).encode())
    [report] = read_reports(store)
    assert (report.rank, report.attempt) == (0, 1)


def test_what_is_far_too_large_is_not_read(store: Clocked) -> None:
    leases(store, "m1").take()
    path = layout.report_path(0, 1)
    store.put(path, b" " * (1 << 20))
    with pytest.raises(IntegrityError, match=f"{path} in the store is damaged: too large"):
        read_records(store, 1)
