"""The marks of a rank in a gang: moments to which all ranks can go back together."""

from __future__ import annotations

from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING

from sojourn.agent.shared import Shared
from sojourn.storage.gangs import ASKED, STEP, Mark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sojourn.agent.sync import Snapshots
    from sojourn.storage.gangs import Round, Rounds

__all__ = ["Marking"]

_SPARE = 2  # marks that are kept at or before the common one, should a snapshot be damaged


class Marking:
    """Stores the workdir of a rank at the moments that count, and keeps what may be needed.

    Scripts mark a step by a small command, which waits until it is stored. Until one does, rank 0
    asks all others for a mark now and then. `alone`: no other rank has a script that marks steps,
    so the command waits until all of them have followed.
    """

    def __init__(
        self,
        rounds: Rounds,
        number: int,
        rank: int,
        folder: Path,
        snapshots: Snapshots,
        *,
        alone: bool,
    ) -> None:
        self._alone = alone
        self._rounds = rounds
        self._round = number
        self._rank = rank
        self._folder = folder
        self._shared = Shared(folder)
        self._snapshots = snapshots
        self._own: dict[Mark, int] = {}

    @property
    def command(self) -> Path:
        """What a script calls to mark a step."""
        return self._folder / "mark"

    def begin(self, mark: Mark) -> None:
        """Store what was restored as the first snapshot of this attempt."""
        Shared(self._folder.parent).make(self._folder.name, 0o777)  # the script may be another's
        for name in ("want", "stored"):
            self._shared.remove(name)
        text = resources.files("sojourn.agent.workloads").joinpath("mark.sh").read_bytes()
        self._shared.write("mark", text, 0o755)
        self._store(mark)

    def look(self) -> None:
        """Store the step that the script wants to be marked, if there is one."""
        want = self._wanted()
        if want is None:
            return
        if want > self._newest(STEP):
            self._store(Mark(STEP, want))
        if not self._alone:
            self._tell(self._newest(STEP))

    def confirm(self, seen: Round, ranks: int) -> None:
        """Tell a script that is alone which step all ranks have stored."""
        common = min(_newest(seen.marks, rank, STEP) for rank in range(ranks))
        if self._alone and common >= 0:
            self._tell(common)

    def follow(self, seen: Round, *, leader: bool) -> None:
        """Store what others ask for. `leader`: the steps of rank 0 are those of this one, too."""
        if leader:
            steps = [m.number for m in seen.marks.get(0, ()) if m.kind == STEP]
            if steps and max(steps) > self._newest(STEP):
                self._store(Mark(STEP, max(steps)))
        if seen.asked > self._newest(ASKED):
            self._store(Mark(ASKED, seen.asked))

    def next_to_ask(self, seen: Round, ranks: int) -> Mark | None:
        """What rank 0 may ask for: all have the last one, and no script marks steps itself."""
        if any(mark.kind == STEP for marks in seen.marks.values() for mark in marks):
            return None
        newest = [_newest(seen.marks, rank, ASKED) for rank in range(ranks)]
        return Mark(ASKED, newest[0] + 1) if min(newest) == max(newest) else None

    def forget(self, seen: Round, ranks: int) -> None:
        """Let go of what is older than what all ranks can go back to."""
        for kind in (STEP, ASKED):
            common = min(_newest(seen.marks, rank, kind) for rank in range(ranks))
            old = sorted(m for m in self._own if m.kind == kind and m.number <= common)[:-_SPARE]
            if kind == STEP and common >= 0:
                old += [mark for mark in self._own if mark.kind == ASKED]
            if old:
                self._rounds.unmark(self._round, self._rank, old)
                for mark in old:
                    del self._own[mark]
        self._snapshots.kept = frozenset(self._own.values())

    def _store(self, mark: Mark) -> None:
        number = self._snapshots.mark()
        self._own[mark] = number
        self._snapshots.kept = frozenset(self._own.values())
        path = self._snapshots.path(number)
        self._rounds.mark(self._round, self._rank, mark, path)

    def _wanted(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._shared.read("want", 32))
        return None

    def _tell(self, step: int) -> None:
        self._shared.write("stored", b"%d\n" % step)

    def _newest(self, kind: str) -> int:
        return max((mark.number for mark in self._own if mark.kind == kind), default=-1)


def _newest(marks: Mapping[int, frozenset[Mark]], rank: int, kind: str) -> int:
    return max((m.number for m in marks.get(rank, ()) if m.kind == kind), default=-1)
