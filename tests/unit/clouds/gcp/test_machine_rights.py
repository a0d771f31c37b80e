"""What a script can do with its machine's account, and that its owner's verbs do not care."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import sojourn
from sojourn import api
from sojourn.core.status import State
from sojourn.engine import lifecycle
from tests.simcloud.gcp.account import SimGCP
from tests.support.waiting import patience, until
from tests.unit.clouds.vm.storing import end_scripts, listed

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ZONE = "us-west1-b"


class Holder:
    """Somebody with a token of the task's machines."""

    def __init__(self, sim: SimGCP, task: str) -> None:
        accounts = sim.project.accounts
        [account] = [each for name, each in accounts.all.items() if name.startswith("tpi-")]
        self.token = accounts.make_token(account, (_SCOPE,))[0]
        self.project = f"{sim.endpoint}/compute.googleapis.com/compute/v1/projects/{sim.project_id}"
        self.group = f"{self.project}/zones/{_ZONE}/instanceGroupManagers/{task}"


def _ask(holder: Holder, method: str, url: str, body: Any = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {holder.token}"}
    return httpx.request(method, url, json=body, headers=headers, trust_env=False, timeout=60)


def _on_group(holder: Holder, method: str, path: str = "", body: Any = None) -> None:
    answer = _ask(holder, method, holder.group + path, body)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def handle(project: SimGCP) -> Iterator[sojourn.Handle]:
    """A task with two machines that run."""
    made = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="gcp", parallelism=2))
    _running(project, 2)
    yield made
    assert project.inventory() == []


@pytest.fixture
def holder(project: SimGCP, handle: sojourn.Handle) -> Holder:
    return Holder(project, handle.id)


def _running(sim: SimGCP, count: int) -> None:
    until(lambda: len([e for e in sim.instances() if e.record["status"] == "RUNNING"]) == count)


def test_a_group_that_a_script_resized_is_stopped_and_deleted(
    project: SimGCP, handle: sojourn.Handle, holder: Holder
) -> None:
    _on_group(holder, "POST", "/resize?size=5")
    _running(project, 5)
    handle.stop()
    assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)


def test_a_script_that_wants_machines_while_it_is_stopped_does_not_get_them(
    project: SimGCP, handle: sojourn.Handle, holder: Holder
) -> None:
    tries = iter(range(2))
    stopping: list[Any] = []

    def look(call: Any) -> None:
        """Right after the group was told to be empty, it is told to be larger."""
        if call.name == "compute:instanceGroupManagers.resize":
            stopping.append(call)
        looked = call.name == "compute:instanceGroupManagers.get"
        if looked and stopping and next(tries, None) is not None:
            _on_group(holder, "POST", "/resize?size=3")

    project.watch(look)
    handle.stop()
    assert next(tries, None) is None
    assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_FLUSH_WITHIN", patience(20))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("verb", ["stop", "delete", "delete --force"])
def test_a_machine_that_a_script_takes_out_of_its_group_does_not_outlive_it(
    project: SimGCP, handle: sojourn.Handle, holder: Holder, verb: str
) -> None:
    """It is in no group any more, and has the name that the group gave it."""
    names = [each.record["name"] for each in project.instances()]
    taken = [f"zones/{_ZONE}/instances/{name}" for name in names[:1]]
    _on_group(holder, "POST", "/abandonInstances", {"instances": taken})
    until(lambda: _managed(holder) == 1)
    if verb == "stop":
        handle.stop()
        assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False, force=verb.endswith("force"))


def _managed(holder: Holder) -> int:
    answer = _ask(holder, "POST", f"{holder.group}/listManagedInstances")
    return len(answer.json().get("managedInstances", ()))


@pytest.mark.parametrize(
    "marks",
    [
        {"sojourn-rank-0": "succeeded 1 0", "sojourn-rank-1": "succeeded 1 0"},
        {"sojourn-ranks": "9" * 5000},
        {"sojourn-ranks": "²", "sojourn-stopped": "yes"},
        {"sojourn-rank-0": f"succeeded {'9' * 5000} {'9' * 5000} x"},
    ],
)
def test_whatever_a_script_marks_a_list_works_and_does_not_call_it_ended(
    project: SimGCP, handle: sojourn.Handle, holder: Holder, marks: dict[str, str]
) -> None:
    body = {"allInstancesConfig": {"properties": {"metadata": marks}}}
    _on_group(holder, "PATCH", "", body)
    [(_, status)] = api.overview()
    assert not status.state.ended
    handle.stop()
    handle.delete(fetch=False)


def test_a_list_tells_that_scripts_have_ended_whose_results_cannot_be_stored(
    project: SimGCP, handle: sojourn.Handle, holder: Holder
) -> None:
    told = {key.replace(":", "-"): value for key, value in end_scripts(handle).items()}
    _on_group(holder, "PATCH", "", {"allInstancesConfig": {"properties": {"metadata": told}}})
    assert (handle.status().state, listed()) == (State.STORING, State.STORING)
    handle.delete(fetch=False)


def test_nothing_else_of_the_project_is_open(
    project: SimGCP, handle: sojourn.Handle, holder: Holder
) -> None:
    """In particular no instance, template or autoscaler of its own, which nobody would remove."""
    zone = f"{holder.project}/zones/{_ZONE}"
    instance = project.instances()[0].record["name"]
    for method, url in (
        ("GET", f"{zone}/instances"),
        ("DELETE", holder.group),
        ("DELETE", f"{zone}/instances/{instance}"),
        ("POST", f"{zone}/instances/{instance}/reset"),
        ("DELETE", f"{holder.project}/global/instanceTemplates/{handle.id}"),
        ("DELETE", f"{holder.project}/global/firewalls/{handle.id}"),
    ):
        assert _ask(holder, method, url).status_code == 403, url
    handle.delete(fetch=False)
