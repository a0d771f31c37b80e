"""The role in the documentation is enough for all verbs, and no action in it is too much."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError, Conflict, InvalidInput, Transient
from sojourn.core.task import Storage
from sojourn.engine import observe, results
from tests.simcloud.az import roles
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.conditions import Asked
from tests.simcloud.az_user import User
from tests.unit.clouds.az.faults.laptop import ID, Laptop
from tests.unit.clouds.vm.laptop import IMAGE

PAGE = Path(__file__).parents[5] / "docs" / "azure.md"
# Without these, all verbs work, and tell less.
OPTIONAL = {
    "microsoft.compute/virtualmachinescalesets/delete/action",
    "microsoft.compute/virtualmachinescalesets/publicipaddresses/read",
    "microsoft.insights/eventtypes/values/read",
    "microsoft.resources/tags/write",
    "microsoft.storage/storageaccounts/read",
}
# The simulated subscription does not ask for these when a group is deleted with all in it.
REAL_SUBSCRIPTIONS_ONLY = {
    "microsoft.managedidentity/userassignedidentities/delete",
    "microsoft.network/networksecuritygroups/delete",
    "microsoft.network/virtualnetworks/delete",
    "microsoft.storage/storageaccounts/delete",
}
OF_GANGS_ON_REAL_SUBSCRIPTIONS_ONLY = {
    "microsoft.compute/proximityplacementgroups/delete",
    "microsoft.network/applicationsecuritygroups/delete",
}
OF_IMAGES_ON_REAL_SUBSCRIPTIONS_ONLY = {
    "microsoft.compute/images/delete",
    "microsoft.compute/snapshots/begingetaccess/action",
}


def blocks() -> list[dict[str, Any]]:
    """The role, and what has to be added to it for gangs and for images."""
    section = PAGE.read_text().split("## Permissions", 1)[1]
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


def documented() -> dict[str, Any]:
    return blocks()[0]


def role_of(definition: dict[str, Any]) -> dict[str, Any]:
    """As Resource Manager has it; Azure's command line writes it with capitals."""
    return {"actions": definition["Actions"], "dataActions": definition["DataActions"]}


def without(definition: dict[str, Any], action: str) -> dict[str, Any]:
    less = copy.deepcopy(definition)
    for kind in ("Actions", "DataActions"):
        less[kind] = [each for each in less[kind] if each.lower() != action.lower()]
    return less


class LimitedUser:
    """A laptop whose user may do what the documentation says."""

    def __init__(self, sim: SimAzure, laptop: Laptop, principal: str) -> None:
        self.laptop = laptop
        self.sim = sim
        self.principal = principal

    def allow(self, definition: dict[str, Any]) -> None:
        self.sim.change_role("limited", role_of(definition))

    def verbs(self) -> dict[str, Callable[[], object]]:
        """In the order in which they can be done."""
        laptop, ctx = self.laptop, self.laptop.ctx
        return {
            "list": self._list,
            "create": laptop.create,
            "status": laptop.status,
            "events": lambda: laptop.cloud.scaler(ID).events(ctx),
            "logs": lambda: list(observe.logs(ctx, laptop.cloud, ID)),
            "pull": lambda: results.pull(ctx, laptop.cloud, ID),
            "interrupt": lambda: self._interrupt(notice=True),
            "kill": lambda: self._interrupt(notice=False),
            "stop": laptop.stop,
            "start": laptop.start,
            "delete": laptop.delete,
        }

    def _list(self) -> None:
        cloud, ctx = self.laptop.cloud, self.laptop.ctx
        cloud.states(ctx, list(cloud.tasks(ctx)))

    def _interrupt(self, *, notice: bool) -> None:
        def running() -> list[str]:
            return [each.vm_id for each in self.sim.instances() if each.state == "running"]

        self.laptop.interrupt(running, notice=notice)


@pytest.fixture
def limited(
    sim: SimAzure, laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LimitedUser:
    environment = sim.user(role_of(documented()), "limited")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "workdir" / "output").mkdir(parents=True)
    (tmp_path / "workdir" / "data").write_text("data")
    laptop.workdir = str(tmp_path / "workdir")
    return LimitedUser(sim, laptop, sim.principal(environment["AZURE_CLIENT_ID"]))


@pytest.mark.slow
def test_the_role_is_enough_and_every_action_is_needed(
    limited: LimitedUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = documented()
    used = _used(limited, monkeypatch)
    assert limited.sim.inventory() == []
    needed = set().union(*used.values()) - OPTIONAL
    given = {each.lower() for each in (*definition["Actions"], *definition["DataActions"])}
    assert given >= OPTIONAL | REAL_SUBSCRIPTIONS_ONLY
    assert given - OPTIONAL - REAL_SUBSCRIPTIONS_ONLY == needed
    for action in sorted(needed):
        verb = next(name for name in used if action in used[name])
        _prepare(limited, definition, verb)
        limited.allow(without(definition, action))
        try:
            limited.verbs()[verb]()
        except (AuthError, Conflict, InvalidInput, Transient):
            continue
        if verb != "list":  # lists are not refused: they have less in them
            pytest.fail(f"{verb} works without {action}")


def _used(limited: LimitedUser, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Do all verbs, and return the actions that each of them needed."""
    used: dict[str, set[str]] = {}
    now = ""
    may, may_with_data = roles.Roles.may, roles.Roles.may_with_data

    def note(principal: str, action: str) -> None:
        if principal == limited.principal:
            used.setdefault(now, set()).add(action.lower())

    def noted(self: roles.Roles, principal: str, action: str, scope: str) -> bool:
        note(principal, action)
        return may(self, principal, action, scope)

    def noted_with_data(self: roles.Roles, principal: str, asked: Asked, scope: str) -> bool:
        note(principal, asked.action)
        return may_with_data(self, principal, asked, scope)

    monkeypatch.setattr(roles.Roles, "may", noted)
    monkeypatch.setattr(roles.Roles, "may_with_data", noted_with_data)
    for name, verb in limited.verbs().items():
        now = name
        verb()
    return used


def _prepare(limited: LimitedUser, definition: dict[str, Any], verb: str) -> None:
    """A task for the verb to be done on; for a creation, none."""
    limited.allow(definition)
    if verb in ("create", "list"):
        if limited.sim.inventory():
            limited.laptop.delete()
        return
    limited.laptop.create()


def test_with_given_identities_the_user_needs_no_right_to_assign_roles(
    limited: LimitedUser,
) -> None:
    administrator = User(limited.sim.environment())
    identity = administrator.make_identity(administrator.make_group())["id"]
    before = limited.sim.inventory()
    definition = documented()
    definition["Actions"] = [
        each for each in definition["Actions"] if "/roleAssignments/" not in each
    ]
    limited.allow(definition)
    limited.laptop.create(permission_set=identity)
    limited.laptop.stop()
    limited.laptop.delete()
    assert limited.sim.inventory() == before
    administrator.close()


def test_a_container_of_the_user_needs_a_few_more(limited: LimitedUser) -> None:
    administrator = User(limited.sim.environment())
    administrator.make_container(administrator.make_group())
    before = limited.sim.inventory()
    section = PAGE.read_text().split("- With `storage.container`", 1)[1].split("\n- ", 1)[0]
    more = [each for each in re.findall("`([^`]+)`", section) if each.startswith("Microsoft.")]
    definition = documented()
    definition["Actions"] += [each for each in more if "/blobs/" not in each]
    definition["DataActions"] += [each for each in more if "/blobs/" in each]
    limited.allow(definition)
    storage = Storage(container="box", container_opts={"account": "anaccount"})
    limited.laptop.create(storage=storage)
    assert any("blob anaccount/box/" in line for line in limited.sim.inventory())
    limited.laptop.stop()
    limited.laptop.delete()
    assert limited.sim.inventory() == before
    administrator.close()


def test_gangs_need_what_is_documented_and_nothing_else(limited: LimitedUser) -> None:
    administrator = User(limited.sim.environment())
    subnet = administrator.make_network(administrator.make_group())
    before = limited.sim.inventory()
    definition, more, _ = blocks()
    definition["Actions"] += more["Actions"]

    def work() -> None:
        options = {"network": subnet}
        limited.laptop.create(gang=True, parallelism=2, region="us-east", options=options)
        limited.laptop.delete()

    limited.allow(definition)
    work()
    for action in more["Actions"]:
        limited.allow(without(definition, action))
        if action.lower() in OF_GANGS_ON_REAL_SUBSCRIPTIONS_ONLY:
            work()
        else:
            with pytest.raises(AuthError, match=f"Allow {action}"):
                work()
        assert limited.sim.inventory() == before
    administrator.close()


def test_gangs_in_their_own_network_need_only_the_placement_group(limited: LimitedUser) -> None:
    definition, more, _ = blocks()
    definition["Actions"] += [each for each in more["Actions"] if "/proximity" in each]
    limited.allow(definition)
    limited.laptop.create(gang=True, parallelism=2)
    limited.laptop.delete()
    assert limited.sim.inventory() == []


@pytest.mark.slow
def test_images_need_what_is_documented_and_nothing_else(limited: LimitedUser) -> None:
    definition, _, more = blocks()
    definition["Actions"] += more["Actions"]
    laptop = limited.laptop

    def work() -> None:
        laptop.make_image()
        try:
            laptop.create(image=f"sojourn:{IMAGE}")
            laptop.delete()
        finally:
            laptop.delete_image()

    limited.allow(definition)
    work()
    assert limited.sim.inventory() == []
    for action in more["Actions"]:
        limited.allow(without(definition, action))
        if action.lower() in OF_IMAGES_ON_REAL_SUBSCRIPTIONS_ONLY:
            work()
        else:
            with pytest.raises(AuthError, match=f"Allow {action}"):
                work()
        assert limited.sim.inventory() == []


def test_an_image_of_somebody_else_needs_one_action_more(limited: LimitedUser) -> None:
    definition = documented()
    definition["Actions"] += ["Microsoft.Compute/images/read"]
    administrator = Laptop(limited.sim)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limited.sim.environment().items():
            patch.setenv(name, value)
        administrator.make_image()
    limited.allow(definition)
    limited.laptop.create(image=f"sojourn:{IMAGE}")
    limited.laptop.delete()
    assert limited.laptop.images() == [(IMAGE, True)]
    administrator.delete_image()


def test_consoles_need_one_action_more(limited: LimitedUser) -> None:
    action = re.search("`([^`]+/retrieveBootDiagnosticsData/action)` is optional", PAGE.read_text())
    assert action
    limited.laptop.create()
    [machine] = limited.laptop.machines()
    scaler = limited.laptop.cloud.scaler(ID)
    with pytest.raises(AuthError, match=r"(?i)Allow .*retrieveBootDiagnosticsData/action"):
        scaler.console(limited.laptop.ctx, machine.id)
    definition = documented()
    definition["Actions"] += [action[1]]
    limited.allow(definition)
    assert scaler.console(limited.laptop.ctx, machine.id) == ""  # it only says that it runs
    limited.laptop.delete()


def test_the_role_is_sorted() -> None:
    definition, *more = blocks()
    for kind in (
        definition["Actions"],
        definition["DataActions"],
        *(each["Actions"] for each in more),
    ):
        assert kind == sorted(kind)
