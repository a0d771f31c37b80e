"""The API server fails at any call of any verb, or the command is killed there.

Repeating converges, deleting leaves nothing. Calls are written down first, on a run without faults.
Being killed at a call without effect is like being killed after the one with an effect before it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import sojourn
from sojourn.core.errors import NotFound, Transient
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube.breaking import ID, VERBS, Break, breaking, changes
from tests.support.waiting import until

_ROOT = Path(__file__).parents[2]


def _prepare(lab: Lab, verb: str) -> None:
    """Have a task on which the verb has something to do."""
    if verb == "create":
        return
    VERBS["create"](str(lab.workdir))
    _until_running()
    if verb == "start":
        VERBS["stop"](str(lab.workdir))


def _until_running() -> None:
    until(lambda: sojourn.get(ID).status().state is sojourn.State.RUNNING)


def _calls(lab: Lab, verb: str) -> list[str]:
    _prepare(lab, verb)
    record = Break()
    with breaking(record):
        VERBS[verb](str(lab.workdir))
    _remove()
    return record.calls


def _remove() -> None:
    with suppress(NotFound):
        sojourn.get(ID).delete(force=True, fetch=False)


def _converges(lab: Lab, verb: str) -> None:
    try:
        VERBS[verb](str(lab.workdir))
    except NotFound:
        assert verb == "delete"  # it had been all but done
    if verb in ("create", "start"):
        _until_running()
    elif verb == "stop":
        assert sojourn.get(ID).status().state is sojourn.State.STOPPED
    elif verb == "delete":
        assert lab.output() == {"file": "result\n"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_call_fails(lab: Lab, kit: KubernetesKit, verb: str, after: bool) -> None:
    (lab.workdir / "data").write_text("data")
    for call in _calls(lab, verb):
        if after and not changes(call):
            continue
        _prepare(lab, verb)
        with suppress(Transient), breaking(Break(call, after=after)):
            VERBS[verb](str(lab.workdir))
        _converges(lab, verb)
        _remove()
        assert kit.leaks() == [], call


@pytest.mark.parametrize("verb", ["create", "stop", "start", "delete"])
def test_the_command_is_killed_at_a_call(lab: Lab, kit: KubernetesKit, verb: str) -> None:
    (lab.workdir / "data").write_text("data")
    effects = [call for call in _calls(lab, verb) if changes(call)]
    for call, when in [(effects[0], "before"), *((each, "after") for each in effects)]:
        _prepare(lab, verb)
        arguments = [verb, str(lab.workdir), call, when]
        done = subprocess.run(
            [sys.executable, "-m", "tests.kube.breaking", *arguments], cwd=_ROOT, check=False
        )
        assert done.returncode in (0, -signal.SIGKILL), (call, when)
        _converges(lab, verb)
        _remove()
        assert kit.leaks() == [], (call, when)
