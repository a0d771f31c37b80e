"""How ranks ended, as tags of the group: so a list of tasks needs no look into their stores.

Each rank has a tag of its own, so that machines do not overwrite each other's. What a group can
carry is limited: one of more ranks has none, and its store is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.core.report import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["MOST", "RANK", "number", "read", "storing", "tags_of", "unstored"]

RANK = "sojourn:rank:"
MOST = 30  # ranks; a group has 50 tags at most, the user's and ours among them
_UNSTORED = "storing"  # no outcome: the script has ended, and its results are not stored yet
_LONGEST = 256  # characters of a value
_FORBIDDEN = re.compile(r"[^\w +\-=.:/@]", re.ASCII)
# Machines can write anything, and some clouds take texts of any length.
_NUMBER = r"\d{1,6}"
_FORM = re.compile(
    rf"(?P<outcome>[a-z-]+) (?P<attempt>{_NUMBER}) (?P<code>-?\d{{1,10}}|none)(?: (?P<why>.*))?",
    re.ASCII,
)


def tags_of(reports: Iterable[Report]) -> dict[str, str]:
    """The tags that tell of those reports that are final."""
    return {f"{RANK}{report.rank}": _value(report) for report in reports if report.outcome.final}


def unstored(rank: int, attempt: int) -> dict[str, str]:
    """The tag that tells that the results of a rank cannot be stored yet; its outcome follows."""
    return {f"{RANK}{rank}": f"{_UNSTORED} {attempt} none"}


def storing(tags: Mapping[str, str]) -> set[int]:
    """The ranks of which the tags of a group say so."""
    found = set()
    for key, value in tags.items():
        rank = key.removeprefix(RANK)
        if key.startswith(RANK) and value.partition(" ")[0] == _UNSTORED:
            found.add(number(rank))
    return found


def _value(report: Report) -> str:
    code = "none" if report.exit_code is None else report.exit_code
    text = f"{report.outcome} {report.attempt} {code} {report.reason}"
    return _FORBIDDEN.sub(" ", text)[:_LONGEST].strip()


def number(text: str) -> int:
    """How many ranks a mark tells of; 0: it is none of ours."""
    return int(text) if re.fullmatch(_NUMBER, text, re.ASCII) else 0


def read(tags: Mapping[str, str]) -> dict[int, Report]:
    """What the tags of a group tell, by rank; those that nobody of us wrote are ignored."""
    found = {}
    for key, value in tags.items():
        rank = key.removeprefix(RANK)
        match = _FORM.fullmatch(value)
        if not key.startswith(RANK) or not re.fullmatch(_NUMBER, rank, re.ASCII) or not match:
            continue
        try:
            outcome = Outcome(match["outcome"])
        except ValueError:
            continue
        code = None if match["code"] == "none" else int(match["code"])
        found[int(rank)] = Report(
            int(rank), int(match["attempt"]), outcome, (match["why"] or "")[:_LONGEST], code
        )
    return found
