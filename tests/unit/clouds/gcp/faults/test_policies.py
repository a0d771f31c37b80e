"""The policy of the project is everybody's: nobody's bindings are lost, however many change it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sojourn.clouds.gcp import policy
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.cloud import GoogleCloud
from sojourn.core.context import Context
from sojourn.core.errors import Conflict
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from sojourn.engine import creation, removal
from tests.simcloud.gcp_user import User
from tests.unit.clouds.gcp.faults.laptop import SCRIPT, Laptop


def _ours(member: str) -> dict[str, Any]:
    return policy.on_group("p", "us-west1-b", "tpi-a", member)[0]


def test_what_others_have_stays_as_it_is_and_where_it_is(laptop: Laptop, user: User) -> None:
    admin = user.policy()["bindings"][0]["members"][0]
    user.bind("roles/compute.viewer", admin, "resource.name == 'x'")
    user.bind("roles/storage.admin", admin)
    before = user.policy()["bindings"]
    laptop.create()
    during = user.policy()["bindings"]
    assert during[: len(before)] == before
    assert len(during) == len(before) + 1
    laptop.delete()
    assert user.policy()["bindings"] == before


def test_a_role_of_which_others_are_members_too_keeps_them(laptop: Laptop, user: User) -> None:
    """Somebody put two members into the binding of a task."""
    laptop.create()
    admin = user.policy()["bindings"][0]["members"][0]
    found = user.policy()
    [ours] = [each for each in found["bindings"] if each.get("condition", {}).get("title")]
    ours["members"].append(admin)
    user.set_policy(found)
    laptop.delete()
    [left] = [each for each in user.policy()["bindings"] if "condition" in each]
    assert left["members"] == [admin]


def test_a_policy_that_somebody_changes_meanwhile_is_read_again(laptop: Laptop, user: User) -> None:
    admin = user.policy()["bindings"][0]["members"][0]
    pending = ["roles/compute.viewer", "roles/storage.admin"]

    def interfere(call: Any) -> None:
        if call.name == "cloudresourcemanager:projects.setIamPolicy" and pending and not call.who:
            role = pending.pop()
            thread = threading.Thread(target=lambda: user.bind(role, admin))
            laptop.sim.watch(lambda _: None)
            thread.start()
            thread.join()
            laptop.sim.watch(interfere)

    laptop.sim.watch(interfere)
    laptop.create()
    laptop.sim.watch(lambda _: None)
    assert pending == []
    roles = [each["role"] for each in user.policy()["bindings"]]
    assert {"roles/compute.viewer", "roles/storage.admin"} < set(roles)
    assert "roles/compute.instanceAdmin.v1" in roles
    laptop.delete()
    assert len(laptop.sim.inventory()) == 2  # theirs


def test_many_tasks_change_it_at_once(laptop: Laptop, user: User) -> None:
    before = user.set_policy(user.policy())["bindings"]  # in Google's own form
    ids = [TaskId.deterministic(str(number)) for number in range(8)]
    failed: list[BaseException] = []

    def each(verb: Any) -> None:
        def run(task: TaskId) -> None:
            try:
                verb(GoogleCloud(Account()), task)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=run, args=(task,)) for task in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []

    def create(cloud: GoogleCloud, task: TaskId) -> None:
        launch = creation.Launch(task, Task(SCRIPT, cloud="gcp"), {})
        creation.create(Context(), cloud, launch)

    each(create)
    after = user.policy()["bindings"]
    assert after[: len(before)] == before
    conditions = [binding["condition"]["expression"] for binding in after[len(before) :]]
    assert sorted(conditions) == sorted({*conditions})
    assert {str(task) for task in ids} == {
        text.rstrip("'").rpartition("/")[2] for text in conditions
    }
    each(lambda cloud, task: removal.delete(Context(), cloud, task))
    laptop.sim.settle()
    assert user.policy()["bindings"] == before
    assert laptop.sim.inventory() == []


def test_a_policy_that_always_changes_is_told_at_last(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "PATIENCE", 0.2)
    name = "cloudresourcemanager:projects.setIamPolicy"
    laptop.sim.fail(name, code="ABORTED", status=409, times=999)
    with pytest.raises(Conflict, match="policy of the project"):
        laptop.create()
    laptop.sim.heal()
    assert laptop.sim.inventory() == []


def test_an_account_that_policies_do_not_know_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.account_ready = 600.0
    laptop.ready_when_asked_twice("cloudresourcemanager:projects.setIamPolicy", after=600.0)
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_what_is_left_of_a_deleted_account_goes_with_the_task(laptop: Laptop, user: User) -> None:
    """Google keeps its bindings, and calls it deleted."""
    laptop.create()
    [line] = [each for each in laptop.sim.inventory() if each.startswith("service account")]
    user.remove_account(line.rpartition(" ")[2])
    assert any("deleted:serviceAccount:" in each for each in laptop.sim.inventory())
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_an_account_of_the_same_start_is_another_one() -> None:
    others = "serviceAccount:x-a@p.iam.gserviceaccount.com"
    given = {"bindings": [{**_ours("serviceAccount:a@p.iam.gserviceaccount.com")}, _ours(others)]}
    left = policy.without(given, "a@p.iam.gserviceaccount.com")
    assert left
    assert [each["members"] for each in left["bindings"]] == [[others]]
    assert policy.without(left, "a@p.iam.gserviceaccount.com") is None
