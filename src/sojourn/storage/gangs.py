"""The rounds of a gang, by conditional puts alone: ranks that start and fall together.

    gang/N/members/R      rank R is there: its attempt, its address, and the marks that it has
    gang/N/ready/R        it has restored the common mark, and can start
    gang/N/marks/R/MARK   it has stored its files as of this mark
    gang/N/asked/MARK     rank 0 asks all others for this mark
    gang/N/done/R         its script succeeded, and its results are stored
    gang/N/failing        the first script of the round that failed, and how
    gang/N/stopped/R      rank R has seen that, and its script has ended
    gang/N/over           how the round ended: only one can say so

A round begins when all have joined. Each finds the same common mark in what the members told, so
nobody has to decide. It is over when all are done, or when `over` is there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.core.report import Outcome, refuse_exit_code
from sojourn.core.untrusted import number as number_in
from sojourn.storage import layout
from sojourn.storage.store import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["ASKED", "STEP", "Ending", "Mark", "Member", "Round", "Rounds", "common_mark"]

STEP = "s"  # a mark that the script set
ASKED = "b"  # one that the agents agreed on
_LARGEST = 1 << 20  # bytes of what a member tells: it may have many marks
_NAME = re.compile(r"gang/(\d{6})/(\w+)(?:/([\w/]+))?", re.ASCII)
_MARK = re.compile(r"([sb])(\d{12})", re.ASCII)
LARGEST_STEP = 10**12 - 1


class Mark(NamedTuple):
    """A moment that all ranks know: a step of the script, or one that the agents agreed on."""

    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.kind}{self.number:012}"

    @classmethod
    def parse(cls, name: str) -> Mark | None:
        found = _MARK.fullmatch(name)
        return cls(found[1], int(found[2])) if found else None


@dataclass(frozen=True)
class Member:
    """A rank in a round. `marks`: what it has stored, by the paths of the snapshots.

    `port`: one that was free there. `keys`: public keys, for those who log in there.
    """

    rank: int
    attempt: int
    machine: str
    address: str
    port: int
    marks: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Member:
        """What another machine of the task wrote."""
        member = cls(**{key: data[key] for key in cls.__dataclass_fields__ if key in data})
        numbers = (member.rank, member.attempt, member.port)
        if any(type(value) is not int for value in numbers):
            raise ValueError("rank, attempt and port must be whole numbers")
        texts = [member.machine, member.address]
        for pairs in (member.marks, member.keys):
            texts += [text for pair in pairs.items() for text in pair]
        if any(type(text) is not str for text in texts):
            raise ValueError("machine, address, marks and keys must be strings")
        return member

    def at(self, mark: Mark) -> str:
        """The newest snapshot at or before a mark; empty: there is none."""
        names = [name for name in self.marks if name[0] == mark.kind and name <= mark.name]
        return self.marks[max(names)] if names else ""


@dataclass(frozen=True)
class Ending:
    """How a round ended. Without a final outcome, all start again.

    `rank`: whose fault it was. `began`: the mark that the round started from; empty: it never
    started. `fruitless`: how many rounds in a row were lost at that mark. `expected`: the machine
    had notice, so that another round may do better.
    """

    outcome: Outcome
    rank: int
    reason: str
    exit_code: int | None = None
    began: str = ""
    fruitless: int = 0
    expected: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ending:
        known = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        ending = cls(**{**known, "outcome": Outcome(data["outcome"])})
        ending._refuse_other_types()
        return ending

    def _refuse_other_types(self) -> None:
        """Another machine wrote it, and it becomes a part of this one's report."""
        if not all(type(text) is str for text in (self.reason, self.began)):
            raise ValueError("reason and began must be strings")
        if not all(type(number) is int for number in (self.rank, self.fruitless)):
            raise ValueError("rank and fruitless must be whole numbers")
        if type(self.expected) is not bool:
            raise ValueError("expected must be a boolean")
        refuse_exit_code(self.exit_code)


@dataclass(frozen=True)
class Round:
    """What is there of a round, by names alone."""

    number: int
    members: frozenset[int] = frozenset()
    ready: frozenset[int] = frozenset()
    done: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()
    marks: Mapping[int, frozenset[Mark]] = field(default_factory=dict)
    asked: int = 0
    failing: bool = False
    over: bool = False


class Rounds:
    """The rounds of the gang of a task, as one machine sees and makes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def newest(self) -> int:
        """The number of the last round that anybody joined; 0: there is none."""
        found = (_parsed(item) for item in self._store.list(layout.GANG))
        return max((name[0] for name in found if name), default=0)

    def look(self, number: int) -> Round:
        """What is there of a round."""
        names = _names(self._store.list(f"{layout.GANG}/{number:06}"))
        ranks: dict[str, set[int]] = {}
        marks: dict[int, set[Mark]] = {}
        asked = 0
        for kind, rest in names:
            if kind == "marks":
                rank, mark = _mark_of(rest)
                if mark:
                    marks.setdefault(rank, set()).add(mark)
            elif kind == "asked":
                mark = Mark.parse(rest)
                asked = max(asked, mark.number if mark else 0)
            elif (rank_there := number_in(rest)) is not None:
                ranks.setdefault(kind, set()).add(rank_there)
        alone = {kind for kind, rest in names if not rest}
        return Round(
            number,
            members=frozenset(ranks.get("members", ())),
            ready=frozenset(ranks.get("ready", ())),
            done=frozenset(ranks.get("done", ())),
            stopped=frozenset(ranks.get("stopped", ())),
            marks={rank: frozenset(found) for rank, found in marks.items()},
            asked=asked,
            failing="failing" in alone,
            over="over" in alone,
        )

    def join(self, number: int, member: Member) -> bool:
        """Whether this very attempt is in the round now; False: another one of its rank is."""
        path = _path(number, "members", f"{member.rank:04}")
        return self._store.put_new(path, json.dumps(asdict(member)).encode())

    def member(self, number: int, rank: int) -> Member:
        """Absent: raises NotFound."""
        path = _path(number, "members", f"{rank:04}")
        return read_json(self._store, path, Member.from_dict, most=_LARGEST)

    def be_ready(self, number: int, rank: int, known: Ending) -> None:
        """A rank can start. `known`: how the round would end if its machine were lost."""
        self._store.put(_path(number, "ready", f"{rank:04}"), _text(known))

    def readiness(self, number: int, rank: int) -> Ending:
        """What a rank knew when it was ready. Absent: raises NotFound."""
        return read_json(self._store, _path(number, "ready", f"{rank:04}"), Ending.from_dict)

    def say(self, number: int, kind: str, rank: int) -> None:
        """That a rank is `done` or has `stopped`."""
        self._store.put(_path(number, kind, f"{rank:04}"), b"")

    def ask(self, number: int, mark: Mark) -> None:
        """All ranks to store their files now."""
        self._store.put(_path(number, "asked", mark.name), b"")

    def mark(self, number: int, rank: int, mark: Mark, snapshot: str) -> None:
        """A rank has stored its files in this snapshot."""
        path = _path(number, "marks", f"{rank:04}/{mark.name}")
        self._store.put(path, json.dumps(snapshot).encode())

    def unmark(self, number: int, rank: int, marks: Iterable[Mark]) -> None:
        """These are not needed any more."""
        self._store.delete([_path(number, "marks", f"{rank:04}/{mark.name}") for mark in marks])

    def marks_of(self, rank: int, ranks: int) -> dict[str, str]:
        """What a rank has stored since the last round that started: mark to path.

        What was stored before belongs to a history that was given up. In a round that did not
        start, a rank may have stored again what it restored, and that comes on top.
        """
        found = [name for item in self._store.list(layout.GANG) if (name := _parsed(item))]
        ready = Counter(number for number, kind, _ in found if kind == "ready")
        started = max((number for number, count in ready.items() if count >= ranks), default=0)
        return {
            mark.name: read_json(self._store, _path(number, kind, rest), str)
            for number, kind, rest in sorted(found)
            if kind == "marks" and number >= started
            for owner, mark in [_mark_of(rest)]
            if owner == rank and mark
        }

    def drop(self, rank: int, snapshot: str) -> None:
        """A snapshot of a rank turned out to be damaged: it is at no mark any more."""
        found = (item.path for item in self._store.list(layout.GANG) if _is_mark(item, rank))
        wrong = [path for path in found if read_json(self._store, path, str) == snapshot]
        self._store.delete(wrong)

    def fail(self, number: int, ending: Ending) -> None:
        """A script failed; the first one of a round counts."""
        self._store.put_new(_path(number, "failing"), _text(ending))

    def failure(self, number: int) -> Ending:
        """The first failure of a round. Absent: raises NotFound."""
        return read_json(self._store, _path(number, "failing"), Ending.from_dict)

    def end(self, number: int, ending: Ending) -> Ending:
        """End a round, unless it has ended; gives how it ended."""
        path = _path(number, "over")
        if self._store.put_new(path, _text(ending)):
            self._store.keep([path])
            return ending
        return self.ending(number)

    def ending(self, number: int) -> Ending:
        """How a round ended. Absent: raises NotFound."""
        return read_json(self._store, _path(number, "over"), Ending.from_dict)

    def forget_before(self, number: int) -> None:
        """Remove former rounds: what all have restored has marks in this one."""
        found = self._store.list(layout.GANG)
        old = [item.path for item in found if (name := _parsed(item)) and name[0] < number]
        self._store.delete(old)


def common_mark(members: Sequence[Member]) -> Mark | None:
    """The newest mark at which all can start again; None: at the very beginning.

    What scripts marked counts more than what agents agreed on, as soon as all have any.
    """
    for kind in (STEP, ASKED):
        own = [[name for name in member.marks if name[0] == kind] for member in members]
        if all(own):
            mark = Mark.parse(min(max(names) for names in own))
            if mark and all(member.at(mark) for member in members):
                return mark
    return None


def _path(number: int, kind: str, rest: str = "") -> str:
    path = f"{layout.GANG}/{number:06}/{kind}"
    return f"{path}/{rest}" if rest else path


def _parsed(item: ObjectInfo) -> tuple[int, str, str] | None:
    found = _NAME.fullmatch(item.path)
    return (int(found[1]), found[2], found[3] or "") if found else None


def _names(found: Iterable[ObjectInfo]) -> list[tuple[str, str]]:
    return [(name[1], name[2]) for item in found if (name := _parsed(item))]


def _mark_of(rest: str) -> tuple[int, Mark | None]:
    text, _, name = rest.partition("/")
    rank = number_in(text)
    return (-1, None) if rank is None else (rank, Mark.parse(name))


def _is_mark(item: ObjectInfo, rank: int) -> bool:
    name = _parsed(item)
    return name is not None and name[1] == "marks" and _mark_of(name[2])[0] == rank


def _text(ending: Ending) -> bytes:
    return json.dumps({**asdict(ending), "outcome": ending.outcome.value}).encode()
