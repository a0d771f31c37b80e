"""How an attempt ended, in words."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sojourn.core.errors import QuotaError, SojournError
from sojourn.core.report import Outcome

if TYPE_CHECKING:
    from sojourn.core.report import Report

__all__ = ["also_saying", "meets", "obstacle", "unstored", "why_ended"]


def meets(path: str, output: str) -> bool:
    """Whether a path is in the output, or the output in it; `.` is all of the workdir."""
    one, other = PurePosixPath(path).parts, PurePosixPath(os.path.normpath(output)).parts
    common = min(len(one), len(other))
    return one[:common] == other[:common]


def also_saying(report: Report, told: str) -> Report:
    """A report that tells this as well."""
    return replace(report, reason=f"{report.reason}; {told}" if report.reason else told)


def unstored(report: Report, why: str) -> Report:
    """A script whose results are lost has not succeeded, whatever it says."""
    if report.outcome is Outcome.SUCCEEDED:
        report = replace(report, outcome=Outcome.FAILED, exit_code=None)
    return replace(also_saying(report, f"could not store the results: {why}"), lost=-1)


def obstacle(error: SojournError) -> str:
    """What is in the way of storing something."""
    full = isinstance(error, QuotaError)  # whatever it was that did not fit in
    return "no space left in the store" if full else error.message


def why_ended(code: int, out_of_memory: bool) -> str:
    """What an exit code means."""
    if out_of_memory:
        return f"the machine ran out of memory; the script ended with exit code {code}"
    if code <= 128:
        return f"the script ended with exit code {code}"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return f"the script ended with exit code {code}"
    hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
    return f"the script was killed by {name}{hint}"
