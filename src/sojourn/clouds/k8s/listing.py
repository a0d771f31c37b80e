"""The states of many tasks from their Jobs and pods, in three calls for all of them."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.jobs import rank_of
from sojourn.clouds.k8s.scaler import is_machine
from sojourn.core.report import Report
from sojourn.core.status import MACHINES_AT_MOST, RankRecord, task_status
from sojourn.core.untrusted import UNREADABLE, number, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.kube.api import Api, Object

__all__ = ["final_reports", "states"]


def states(api: Api, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
    """Of tasks whose ranks have all ended: their pods tell how. Others need a closer look."""
    jobs: dict[str, list[Object]] = defaultdict(list)
    pods: dict[str, list[Object]] = defaultdict(list)
    ours = f"{names.OURS},{names.ID}"
    for job in api.list("Job", ours):
        jobs[job["metadata"]["labels"][names.ID]].append(job)
    for pod in api.list("Pod", ours):
        pods[pod["metadata"]["labels"][names.ID]].append(pod)
    found = {}
    for id in ids:  # noqa: A001
        reports = final_reports(pods[str(id)])
        ranks = {rank_of(job) for job in jobs[str(id)]} or _ranks(pods[str(id)])
        if any(map(is_machine, pods[str(id)])):
            continue  # as long as it has machines, it has not ended
        if ranks and set(reports) == ranks == set(range(len(ranks))):
            records = [
                RankRecord(rank, report.attempt, machine, report)
                for rank, (machine, report) in sorted(reports.items())
            ]
            found[id] = task_status(records, wanted=0, alive=())
    return found


def _ranks(pods: list[Object]) -> set[int]:
    """Of an MPI program, which has no Job for each: its pods tell how many there are."""
    counts = [pod["metadata"]["labels"].get(names.RANKS, "0") for pod in pods]
    return set(range(min(MACHINES_AT_MOST, max((number(c) or 0 for c in counts), default=0))))


def final_reports(pods: list[Object]) -> dict[int, tuple[str, Report]]:
    """How ranks ended, and on which machines, as their agents left it in the pods' status."""
    found: dict[int, tuple[str, Report]] = {}
    for pod in pods:
        for item in pod.get("status", {}).get("containerStatuses") or ():
            message = (item.get("state", {}).get("terminated") or {}).get("message")
            if item["name"] != names.AGENT or not message:
                continue
            with suppress(*UNREADABLE):
                report = Report.from_dict(parsed(message))
                known = found.get(report.rank)
                if known and known[1].attempt > report.attempt:
                    continue
                if report.outcome.final and report.rank == rank_of(pod):
                    found[report.rank] = (pod["metadata"]["name"], report)
    return found
