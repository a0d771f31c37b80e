"""The role in the documentation is enough for all verbs, and no permission in it is too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.clouds.gcp.checkup import NEEDED
from sojourn.core.errors import AuthError, Conflict
from tests.simcloud.gcp_user import User
from tests.support.waiting import until
from tests.unit.clouds.gcp.faults.laptop import ID, Laptop
from tests.unit.clouds.gcp.faults.limited import PAGE, Limited, documented

# A creation only asks whether objects are there, and is told no reason.
_ELSEWHERE = {"storage.objects.get": "status"}


@pytest.fixture
def limited(laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Limited:
    (tmp_path / "workdir" / "output").mkdir(parents=True)
    (tmp_path / "workdir" / "data").write_text("data")
    laptop.workdir = str(tmp_path / "workdir")
    return Limited(laptop.sim, laptop, monkeypatch)


def test_the_documented_role_has_what_doctor_looks_for() -> None:
    assert documented()["includedPermissions"] == list(NEEDED)
    assert sorted(NEEDED) == list(NEEDED)


def test_the_documented_role_can_be_made(user: User) -> None:
    role = documented()
    path = "v1/projects/simulated-project/roles"
    user.call("POST", "iam", path, {"roleId": "sojourn", "role": role})


def test_the_role_is_enough_and_every_permission_is_used(limited: Limited) -> None:
    for verb in limited.verbs():
        limited.do(verb)
    assert limited.sim.inventory() == []
    assert set(NEEDED) == set().union(*limited.used.values())


@pytest.mark.slow
def test_without_any_one_permission_a_verb_fails_and_names_it(limited: Limited) -> None:
    for verb in limited.verbs():
        limited.do(verb)
    used = {verb: frozenset(found) for verb, found in limited.used.items()}
    unnoticed = []
    for permission in NEEDED:
        verb = next(name for name in used if permission in used[name])
        verb = _ELSEWHERE.get(permission, verb)
        limited.prepare(verb)
        limited.allow(set(NEEDED) - {permission})
        try:
            limited.do(verb)
        except (AuthError, Conflict) as error:  # a bucket that is hidden may be another's
            if permission not in str(error):
                unnoticed.append(f"{verb} without {permission} only says: {error}")
        else:
            unnoticed.append(f"{verb} works without {permission}")
    assert not unnoticed, "\n".join(unnoticed)


def test_consoles_need_one_permission_more(limited: Limited) -> None:
    more = "compute.instances.getSerialPortOutput"
    assert f"`{more}` is optional" in PAGE.read_text()
    limited.laptop.create()
    until(limited.laptop.machines)
    [machine] = limited.laptop.machines()
    scaler = limited.laptop.cloud.scaler(ID)
    with pytest.raises(AuthError, match=more):
        scaler.console(limited.laptop.ctx, machine.id)
    limited.allow({*NEEDED, more})
    assert scaler.console(limited.laptop.ctx, machine.id) == ""  # it only says that it runs
    limited.laptop.delete()


@pytest.mark.parametrize("container", ["", "users-own"])
def test_with_a_given_account_the_user_cannot_change_policies(
    limited: Limited, user: User, container: str
) -> None:
    email = user.make_account()
    user.make_bucket("users-own")
    before = limited.sim.inventory()
    left_out = {
        *("iam.serviceAccounts.create", "iam.serviceAccounts.delete"),
        *("resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"),
        *("storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy"),
    }
    if container:
        left_out |= {"storage.buckets.create", "storage.buckets.delete"}
    limited.allow(set(NEEDED) - left_out)
    limited.laptop.create(permission_set=email, **limited.contained(container))
    limited.laptop.stop()
    limited.laptop.start()
    limited.laptop.delete()
    assert limited.sim.inventory() == before
