"""Gangs in pods: ranks find each other, and one that falls takes all along to the same step."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import sojourn
from sojourn.clouds.k8s import names
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab, log_of
from tests.kube import images
from tests.support.waiting import until

_ALLREDUCE = (Path(__file__).parents[2] / "examples" / "allreduce.py").read_text()
_TELLING = _ALLREDUCE.replace(
    "check=True)\n", "check=True)\n        print('marked', state['step'])\n"
)
_RANKS = 3
_LOST = 4  # times
_STEPS = 25


def _gang(lab: Lab, script: str = _ALLREDUCE, **more: Any) -> sojourn.Handle:
    given = {"gang": True, "parallelism": _RANKS, "image": images.PYTHON, **more}
    return lab.create(script, **given)


def _made(kit: KubernetesKit) -> list[str]:
    return [kind for kind in ("NetworkPolicy", "Service") for _ in kit.api.list(kind, names.OURS)]


def _starts(handle: sojourn.Handle) -> list[int]:
    """The steps at which ranks started, in the order in which they did."""
    return [
        int(found[1]) for line in log_of(handle) if (found := re.search(r"at step (\d+)", line))
    ]


def test_a_rank_is_lost_again_and_again(lab: Lab, kit: KubernetesKit) -> None:
    handle = _gang(lab, _TELLING, environment={"STEPS": str(_STEPS), "PAUSE": "0.5"})
    waits: list[float] = []
    for loss in range(1, _LOST + 1):
        until(lambda loss=loss: len(_starts(handle)) == loss * _RANKS, 120)  # type: ignore[misc]
        marked = max(_starts(handle)) + 2
        until(lambda marked=marked: _marked(handle) >= marked, 60)  # type: ignore[misc]
        began = time.monotonic()
        kit.api.delete("Pod", handle.status().ranks[loss % _RANKS].machine, grace=0)
        until(lambda loss=loss: len(_starts(handle)) == (loss + 1) * _RANKS, 120)  # type: ignore[misc]
        waits.append(round(time.monotonic() - began, 1))
    print("seconds from each loss to all ranks running again:", waits)  # noqa: T201
    assert handle.wait().status is sojourn.State.SUCCEEDED
    total = _STEPS * sum(range(1, _RANKS + 1))
    assert sorted(line for line in log_of(handle) if " has " in line) == [
        f"rank {rank} has {total}" for rank in range(_RANKS)
    ]
    steps = _starts(handle)
    rounds = [set(steps[at : at + _RANKS]) for at in range(0, len(steps), _RANKS)]
    assert all(len(each) == 1 for each in rounds), steps
    assert steps == sorted(steps)
    assert steps[-1] > 0
    _refuse_waste(kit)
    assert max(waits) < 3 * min(waits) + 10  # no back-off
    handle.delete()
    assert _made(kit) == []


def _marked(handle: sojourn.Handle) -> int:
    """The newest step that any rank has stored."""
    lines = [line.split() for line in log_of(handle)]
    return max((int(words[1]) for words in lines if words[0] == "marked"), default=0)


def _refuse_waste(kit: KubernetesKit) -> None:
    """A survivor's pod takes the next of a Job's 1000 indexes: one for each loss, and no more."""
    for job in kit.api.list("Job", names.OURS):
        status = job["status"]
        failed = str(status.get("failedIndexes") or "")
        assert int(status.get("failed") or 0) <= _LOST, (job["metadata"]["name"], failed)
