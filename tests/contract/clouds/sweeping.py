"""What the sweepers of real accounts have in common: they remove what tests left, and only that.

Without --yes they only show what there is. How a cloud finds what has a mark does not belong here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

_GONE_WITHIN = 600.0  # seconds


@dataclass(frozen=True)
class Found:
    """One thing that tests made, and how to remove it."""

    title: str
    remove: Callable[[], object]


class Sweeper:
    """Finds what has a mark; `mark`: of one run of the tests only."""

    refusal: type[Exception]  # of calls: something else has to go first, or it has gone
    patience = _GONE_WITHIN

    def __init__(self, mark: str = "") -> None:
        self._mark = mark

    def found(self) -> Iterator[Found]:
        """In the order in which it can be removed."""
        raise NotImplementedError

    def is_ours(self, mark: str | None) -> bool:
        """Whether this is a mark that is looked for."""
        return bool(mark) and self._mark in ("", mark)

    def remove(self) -> list[str]:
        """Remove all of it, again and again while things depend on each other; what is left."""
        give_up = time.monotonic() + self.patience
        while found := list(self.found()):
            for item in found:
                with suppress(self.refusal):
                    item.remove()
            if time.monotonic() > give_up:
                break
            time.sleep(1)
        return [item.title for item in found]


def run(
    doc: str | None,
    arguments: list[str],
    make: Callable[[str, str], Sweeper],
    places: Sequence[str] = (),
) -> int:
    """The command; `make` has a sweeper for a place and a mark, `places` are those by default.

    A cloud whose accounts are searched as a whole has none.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--yes", action="store_true", help="remove it")
    parser.add_argument("--mark", default="", help="of one run of the tests only")
    if places:
        parser.add_argument("regions", nargs="*", default=places)
    given = parser.parse_args(arguments)
    left: list[str] = []
    for place in given.regions if places else [""]:
        sweeper = make(place, given.mark)
        for item in sweeper.found():
            sys.stdout.write(f"{place}: {item.title}\n" if place else f"{item.title}\n")
        left += sweeper.remove() if given.yes else []
    sys.stdout.writelines(f"left: {title}\n" for title in left)
    return 1 if left else 0
