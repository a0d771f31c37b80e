"""What a script can do with its machine's identity, and that its owner's verbs do not care."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import sojourn
from sojourn import api
from sojourn.core.status import State
from sojourn.engine import lifecycle
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User, _version
from tests.support.waiting import patience, until
from tests.unit.clouds.vm.storing import end_scripts, listed

_ARM = "https://management.azure.com"
_TWO = {"minimum": "2", "default": "2", "maximum": "5"}


class Holder:
    """Somebody with a token of the task's machines."""

    def __init__(self, sim: SimAzure, user: User, task: str) -> None:
        group = f"/subscriptions/{sim.subscription}/resourceGroups/{task}/providers"
        identity = f"{group}/Microsoft.ManagedIdentity/userAssignedIdentities/{task}"
        found = sim._parts.resources.find(identity)
        assert found
        self.token = sim._parts.directory.issue(found.inner.principal, _ARM, 3600)
        self.set = f"{group}/Microsoft.Compute/virtualMachineScaleSets/{task}"
        self.setting = f"{group}/Microsoft.Insights/autoscalesettings/{task}"
        self._user = user

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self._user.http.request(
            method,
            f"{_ARM}{path}",
            params={"api-version": _version(path)},
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def change(self, **changed: Any) -> None:
        """Something of the autoscale setting."""
        answer = self.call("PATCH", self.setting, {"properties": changed})
        assert answer.status_code < 300, answer.text


@pytest.fixture
def handle(laptop: SimAzure) -> Iterator[sojourn.Handle]:
    """A task with two machines that run."""
    before = laptop.inventory()
    made = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="az", parallelism=2))
    until(lambda: len(made.machines()) == 2)
    yield made
    assert laptop.inventory() == before


@pytest.fixture
def holder(laptop: SimAzure, user: User, handle: sojourn.Handle) -> Holder:
    return Holder(laptop, user, handle.id)


def _later() -> dict[str, Any]:
    """A profile of somebody else's, for another time."""
    fixed = {"timeZone": "UTC", "start": "2030-01-01T00:00:00Z", "end": "2031-01-01T00:00:00Z"}
    return {"name": "mine", "capacity": _TWO, "rules": [], "fixedDate": fixed}


@pytest.mark.parametrize("kind", ["always", "later"])
def test_a_setting_that_a_script_changed_starts_nothing_after_a_stop(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder, kind: str
) -> None:
    always = {"name": "mine", "capacity": _TWO, "rules": []}
    found = holder.call("GET", holder.setting).json()["properties"]["profiles"]
    holder.change(profiles=[always] if kind == "always" else [*found, _later()])
    handle.stop()
    laptop.advance(3600)
    assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.start()
    until(lambda: len(handle.machines()) == 2)
    handle.delete(fetch=False)


def test_a_script_that_wants_machines_while_it_is_stopped_does_not_get_them(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder
) -> None:
    changes: list[str] = []

    def look(call: Any) -> None:
        """Right after the setting was disabled, it is enabled."""
        changes.extend([call.name] if call.name.startswith("autoscaleSettings.create") else [])
        if call.name == "virtualMachineScaleSetVMs.list" and 0 < len(changes) < 3:
            capacity = {"sku": {"capacity": 2}}
            assert holder.call("PATCH", holder.set, capacity).status_code < 300
            holder.change(enabled=True, profiles=profiles)

    profiles = holder.call("GET", holder.setting).json()["properties"]["profiles"]
    laptop.watch(look)
    handle.stop()
    assert len(changes) == 3
    laptop.advance(3600)
    assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)


def test_a_scale_set_that_a_script_enlarged_is_stopped_and_deleted(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder
) -> None:
    marks = {"sojourn:ranks": "9" * 200, "sojourn:rank:0": "succeeded 1 0"}
    marks |= {"sojourn:rank:1": "succeeded 1 0"}
    body = {"operation": "Merge", "properties": {"tags": marks}}
    tags = f"{holder.set}/providers/Microsoft.Resources/tags/default"
    for path, change in ((holder.set, {"sku": {"capacity": 4}}), (tags, body)):
        answer = holder.call("PATCH", path, change)
        assert answer.status_code < 300, answer.text
    [(_, status)] = api.overview()
    assert not status.state.ended
    handle.stop()
    assert handle.machines() == []
    handle.delete(fetch=False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_FLUSH_WITHIN", patience(20))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["protectFromScaleIn", "protectFromScaleSetActions"])
def test_a_machine_that_a_script_protected_is_taken_away(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder, kind: str
) -> None:
    _protect(holder, kind)
    handle.stop()
    assert (handle.machines(), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)


@pytest.mark.usefixtures("impatient")
def test_that_it_cannot_be_told_to_leave_at_once_does_not_matter(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder
) -> None:
    _protect(holder, "protectFromScaleIn")
    deletes = "virtualMachineScaleSets.deleteInstances"
    laptop.fail(deletes, status=409, code="Conflict", times=2)
    handle.delete(fetch=False)


def _protect(holder: Holder, kind: str) -> None:
    machines = holder.call("GET", f"{holder.set}/virtualMachines").json()["value"]
    path = f"{holder.set}/virtualMachines/{machines[0]['instanceId']}"
    body = {"location": machines[0]["location"], "properties": {"protectionPolicy": {kind: True}}}
    assert holder.call("PUT", path, body).status_code < 300


def test_a_task_whose_scale_set_a_script_deleted_is_deleted(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder
) -> None:
    answer = holder.call("DELETE", holder.set)
    assert answer.status_code < 300, answer.text
    until(lambda: not handle.status().ranks)  # as if its creation had not finished
    handle.stop()
    handle.delete(fetch=False)


def test_a_list_tells_that_scripts_have_ended_whose_results_cannot_be_stored(
    laptop: SimAzure, handle: sojourn.Handle, holder: Holder
) -> None:
    body = {"operation": "Merge", "properties": {"tags": end_scripts(handle)}}
    path = f"{holder.set}/providers/Microsoft.Resources/tags/default"
    answer = holder.call("PATCH", path, body)
    assert answer.status_code < 300, answer.text
    assert (handle.status().state, listed()) == (State.STORING, State.STORING)
    handle.delete(fetch=False)
