"""Where everything lies in a task's store.

    task.json                       the task, without its environment's values
    environment.json                these, for whoever may read the store
    creators/MARK                   a command began to create it: by whom, and what it uploads
    runs/N                          run N begins: machines that stayed after the last one go on
    uploaded                        all is there: machines that are made before the upload wait
    workdir/objects/HASH            what was pushed: packs of small files, chunks of large ones
    workdir/snapshots/SEQ           and the manifests that make snapshots of it
    programs/SHA256/SEQ             a program that machines cannot fetch elsewhere, in pieces
    attempts/R/A                    somebody carries out attempt A of rank R; rewritten to renew
    reports/R/A                     how that attempt ended
    logs/R/A/SEQ                    segments of its log
    ranks/R/data/A/objects/HASH     what that attempt stored,
    ranks/R/data/A/snapshots/SEQ    and its snapshots
    gang/N/...                      round N of a gang, see `gangs`
    machines/ID                     a machine looked at the store's clock
    follow                          rewritten while somebody follows the log

Numbers are padded, so that names sort as numbers do. Each prefix has one writer.

Machines write below MACHINES_WRITE and nowhere else; a cloud that can say so in a policy does.
All the rest is written by laptops. A laptop ignores names that are not of this layout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.storage.objectinfo import ObjectInfo

__all__ = [
    "ATTEMPTS",
    "CREATORS",
    "ENVIRONMENT",
    "FOLLOW",
    "GANG",
    "LAPTOPS_WRITE",
    "LOGS",
    "MACHINES",
    "MACHINES_WRITE",
    "OF_A_RUN",
    "PROGRAMS",
    "RANKS",
    "REPORTS",
    "RUNS",
    "TASK",
    "UPLOADED",
    "WORKDIR",
    "attempt_of",
    "attempt_of_data",
    "attempt_path",
    "creator_path",
    "data_prefix",
    "lines_prefix",
    "logs_prefix",
    "machine_path",
    "newest_run",
    "objects_prefix",
    "program_path",
    "program_prefix",
    "report_path",
    "run_path",
    "segment_of",
    "segment_path",
    "snapshot_of",
    "snapshot_path",
    "snapshots_prefix",
]

TASK = "task.json"
ENVIRONMENT = "environment.json"
CREATORS = "creators"
RUNS = "runs"
UPLOADED = "uploaded"
WORKDIR = "workdir"
PROGRAMS = "programs"
ATTEMPTS = "attempts"
REPORTS = "reports"
LOGS = "logs"
RANKS = "ranks"
GANG = "gang"
MACHINES = "machines"
FOLLOW = "follow"
MACHINES_WRITE = (ATTEMPTS, REPORTS, LOGS, RANKS, GANG, MACHINES)
OF_A_RUN = (ATTEMPTS, REPORTS, LOGS, RANKS, GANG)
LAPTOPS_WRITE = (TASK, ENVIRONMENT, CREATORS, RUNS, UPLOADED, WORKDIR, PROGRAMS, FOLLOW)

_ATTEMPT = re.compile(r"(attempts|reports)/(\d{4})/(\d{6})", re.ASCII)
_RUN = re.compile(r"runs/(\d{6})", re.ASCII)
_DATA = re.compile(r"ranks/\d{4}/data/(\d{6})/", re.ASCII)
_SNAPSHOT = re.compile(
    r"(?:workdir|ranks/\d{4}/data/(\d{6}))/snapshots/(\d{8})",
    re.ASCII,
)
_SEGMENT = re.compile(r"logs/(\d{4})/(\d{6})/\d{8}", re.ASCII)


def attempt_path(rank: int, attempt: int) -> str:
    """The lease on an attempt."""
    return f"{ATTEMPTS}/{rank:04}/{attempt:06}"


def report_path(rank: int, attempt: int) -> str:
    """How an attempt ended."""
    return f"{REPORTS}/{rank:04}/{attempt:06}"


def attempt_of(path: str) -> tuple[int, int] | None:
    """The rank and the attempt that a lease or a report is of; None if it is neither."""
    found = _ATTEMPT.fullmatch(path)
    return (int(found[2]), int(found[3])) if found else None


def creator_path(mark: str) -> str:
    """The mark of a command that creates the task."""
    return f"{CREATORS}/{mark}"


def run_path(number: int) -> str:
    """That a run has begun; the first one needs no such object."""
    return f"{RUNS}/{number:06}"


def newest_run(found: Iterable[ObjectInfo]) -> int:
    """The number of the last of these runs; 1: none was ever begun again.

    One that is empty is announced: what the last run stored is being removed.
    """
    begun = (_RUN.fullmatch(item.path) for item in found if item.size)
    return max((int(run[1]) for run in begun if run), default=1)


def logs_prefix(rank: int) -> str:
    """The folder of all log segments of a rank."""
    return f"{LOGS}/{rank:04}"


def segment_path(rank: int, attempt: int, number: int) -> str:
    """One segment of an attempt's log."""
    return f"{logs_prefix(rank)}/{attempt:06}/{number:08}"


def segment_of(path: str) -> tuple[int, int] | None:
    """The rank and the attempt that a segment is of; None if it is no segment."""
    found = _SEGMENT.fullmatch(path)
    return (int(found[1]), int(found[2])) if found else None


def machine_path(machine: str) -> str:
    """An object that a machine writes to learn the time by the store's clock."""
    return f"{MACHINES}/{machine}"


def program_prefix(sha256: str) -> str:
    """The folder of the pieces of a program."""
    return f"{PROGRAMS}/{sha256}"


def program_path(sha256: str, number: int) -> str:
    """One of them."""
    return f"{program_prefix(sha256)}/{number:08}"


def lines_prefix(rank: int) -> str:
    """The folder of the lines of snapshots of all attempts of a rank."""
    return f"{RANKS}/{rank:04}/data"


def data_prefix(rank: int, attempt: int) -> str:
    """The line of snapshots that only this attempt writes."""
    return f"{lines_prefix(rank)}/{attempt:06}"


def objects_prefix(line: str) -> str:
    """The folder of the packs and chunks of a line of snapshots."""
    return f"{line}/objects"


def snapshots_prefix(line: str) -> str:
    """The folder of the manifests of a line of snapshots."""
    return f"{line}/snapshots"


def snapshot_path(line: str, number: int) -> str:
    """One manifest."""
    return f"{snapshots_prefix(line)}/{number:08}"


def snapshot_of(path: str) -> tuple[int, int] | None:
    """The attempt that stored a manifest, and its number; None if it is no manifest.

    What was pushed is of attempt 0.
    """
    found = _SNAPSHOT.fullmatch(path)
    return (int(found[1] or 0), int(found[2])) if found else None


def attempt_of_data(path: str) -> int | None:
    """The attempt whose line of snapshots an object is in; None if it is in none."""
    found = _DATA.match(path)
    return int(found[1]) if found else None
