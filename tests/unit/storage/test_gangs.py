"""The rounds of a gang: what each rank finds in what the others said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.errors import NotFound
from sojourn.core.report import Outcome
from sojourn.storage.folder import FolderStore
from sojourn.storage.gangs import ASKED, STEP, Ending, Mark, Member, Rounds, common_mark


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path)


def member(rank: int, *marks: Mark, attempt: int = 1) -> Member:
    stored = {mark.name: f"{rank}/{mark.name}" for mark in marks}
    return Member(rank, attempt, f"m{rank}", f"10.0.0.{rank}", 1000 + rank, stored)


MARKS = st.frozensets(st.builds(Mark, st.sampled_from([STEP, ASKED]), st.integers(0, 9)))


@given(st.lists(MARKS, min_size=1, max_size=5))
def test_all_ranks_can_go_back_to_the_common_mark(held: list[frozenset[Mark]]) -> None:
    members = [member(rank, *marks) for rank, marks in enumerate(held)]
    found = common_mark(members)
    assert found == common_mark(members[::-1])  # whoever looks finds the same
    newest = {
        kind: [max((m.number for m in marks if m.kind == kind), default=-1) for marks in held]
        for kind in (STEP, ASKED)
    }
    if found is None:
        assert all(
            min(numbers) < 0 or any(min(numbers) < min(_of(kind, marks)) for marks in held)
            for kind, numbers in newest.items()
        )
    else:
        assert found.number == min(newest[found.kind])  # no rank has to invent anything
        for rank, marks in enumerate(held):
            best = max(n for n in _of(found.kind, marks) if n <= found.number)
            assert members[rank].at(found) == f"{rank}/{Mark(found.kind, best).name}"


def _of(kind: str, marks: frozenset[Mark]) -> list[int]:
    return [mark.number for mark in marks if mark.kind == kind]


def test_steps_of_scripts_count_more_than_what_agents_agreed_on() -> None:
    marks = (Mark(STEP, 3), Mark(ASKED, 8), Mark(ASKED, 9))
    both = [member(rank, *marks) for rank in range(2)]
    assert common_mark(both) == Mark(STEP, 3)
    early = [both[0], member(1, Mark(ASKED, 8))]
    assert common_mark(early) == Mark(ASKED, 8)
    assert common_mark([both[0], member(1)]) is None


def test_what_is_there_of_a_round(store: FolderStore) -> None:
    rounds = Rounds(store)
    assert rounds.newest() == 0
    assert rounds.join(1, member(0))
    assert rounds.join(1, member(1))
    rounds.be_ready(1, 0, Ending(Outcome.LOST, 0, "", began="s000000000004"))
    rounds.mark(1, 0, Mark(STEP, 4), "ranks/0000/x")
    rounds.ask(1, Mark(ASKED, 2))
    rounds.say(1, "done", 1)
    seen = rounds.look(1)
    assert seen.members == {0, 1}
    assert (sorted(seen.ready), sorted(seen.done), seen.asked) == ([0], [1], 2)
    assert seen.marks == {0: frozenset({Mark(STEP, 4)})}
    assert not seen.failing
    assert not seen.over
    assert rounds.newest() == 1
    assert rounds.member(1, 1) == member(1)
    assert rounds.readiness(1, 0).began == "s000000000004"
    assert rounds.marks_of(0, 2) == {"s000000000004": "ranks/0000/x"}
    rounds.unmark(1, 0, [Mark(STEP, 4)])
    assert rounds.marks_of(0, 2) == {}


def test_marks_of_a_round_that_did_not_start_come_on_top(store: FolderStore) -> None:
    rounds = Rounds(store)
    known = Ending(Outcome.LOST, 0, "")
    for number, steps in ((1, (9,)), (2, (2, 3)), (3, (3,))):
        for step in steps:
            rounds.mark(number, 0, Mark(STEP, step), f"{number}/{step}")
    for rank in range(2):
        rounds.be_ready(1, rank, known)
        rounds.be_ready(2, rank, known)
    rounds.be_ready(3, 0, known)  # the other one could not
    assert rounds.marks_of(0, 2) == {"s000000000002": "2/2", "s000000000003": "3/3"}
    rounds.be_ready(3, 1, known)
    assert rounds.marks_of(0, 2) == {"s000000000003": "3/3"}


def test_only_one_attempt_of_a_rank_is_in_a_round(store: FolderStore) -> None:
    rounds = Rounds(store)
    assert rounds.join(1, member(0))
    assert rounds.join(1, member(0))  # said again, after an answer that got lost
    assert not rounds.join(1, member(0, attempt=2))


def test_the_first_to_fail_and_the_first_to_end_a_round_count(store: FolderStore) -> None:
    rounds = Rounds(store)
    first = Ending(Outcome.FAILED, 1, "exit code 3", 3)
    rounds.fail(1, first)
    rounds.fail(1, Ending(Outcome.FAILED, 0, "exit code 1", 1))
    assert rounds.failure(1) == first
    assert rounds.look(1).failing
    assert rounds.end(1, first) == first
    assert rounds.end(1, Ending(Outcome.LOST, 2, "lost")) == first
    assert rounds.look(1).over
    with pytest.raises(NotFound):
        rounds.ending(2)


def test_former_rounds_are_forgotten(store: FolderStore) -> None:
    rounds = Rounds(store)
    for number in (1, 2, 3):
        rounds.join(number, member(0))
    rounds.forget_before(3)
    assert [rounds.look(number).members for number in (1, 2, 3)] == [set(), set(), {0}]


def test_names_that_are_not_ours_do_not_count(store: FolderStore) -> None:
    for path in ("gang/x/members/0000", "gang/000001/marks/a/b", "gang/000001/members/ab"):
        store.put(path, b"?")
    seen = Rounds(store).look(1)
    assert not seen.members
    assert not seen.marks
