"""The policy in the documentation is enough for all verbs, and no action in it is too much."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError, Conflict
from sojourn.engine import observe, results
from tests.simcloud.aws import rights
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User
from tests.support.waiting import until
from tests.unit.clouds.aws.faults.laptop import ID, Laptop

PAGE = Path(__file__).parents[5] / "docs" / "aws.md"
# The simulated account does not ask for these; a group with tags needs the second in a real one.
REAL_ACCOUNTS_ONLY = {"iam:CreateServiceLinkedRole", "autoscaling:CreateOrUpdateTags"}
# Against what a script did with a role of the user's.
DEFENCE = {"autoscaling:UpdateAutoScalingGroup"}
# Without these, all verbs work, and `list` knows less at a glance.
OPTIONAL = {"iam:ListRoles", "autoscaling:CreateOrUpdateTags"}

# Without it, what is in buckets of the user is not listed; all else needs it.
_LESS = ("list", "ec2:DescribeSecurityGroups")

_ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def blocks() -> list[dict[str, Any]]:
    """The policy, and what has to be added to it for gangs and for images."""
    section = PAGE.read_text().split("## Permissions", 1)[1]
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


def documented() -> dict[str, Any]:
    return blocks()[0]


def actions(policy: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for statement in policy["Statement"]:
        given = statement["Action"]
        found += [given] if isinstance(given, str) else given
    return found


def without(policy: dict[str, Any], action: str) -> dict[str, Any]:
    less = copy.deepcopy(policy)
    for statement in less["Statement"]:
        given = statement["Action"]
        given = [given] if isinstance(given, str) else given
        statement["Action"] = [each for each in given if each != action] or ["none:None"]
    return less


class LimitedUser:
    """A laptop whose user may do what the documentation says, and an administrator beside it."""

    def __init__(self, sim: SimAWS, laptop: Laptop, administrator: User) -> None:
        self.laptop = laptop
        self.administrator = administrator
        self.sim = sim

    def allow(self, policy: dict[str, Any]) -> None:
        self.administrator.iam.put_user_policy(
            UserName="limited", PolicyName="given", PolicyDocument=json.dumps(policy)
        )

    def verbs(self) -> dict[str, Callable[[], object]]:
        """In the order in which they can be done."""
        laptop, ctx = self.laptop, self.laptop.ctx
        return {
            "list": lambda: list(laptop.cloud.tasks(ctx)),
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

    def _interrupt(self, *, notice: bool) -> None:
        def running() -> list[str]:
            return [each.id for each in self.sim.instances() if each.state == "running"]

        self.laptop.interrupt(running, notice=notice)

    def suspend(self) -> None:
        """Have the group launch nothing, as one that failed for a day."""
        self.administrator.autoscaling.suspend_processes(
            AutoScalingGroupName=str(ID), ScalingProcesses=["Launch"]
        )

    def begin_upload(self) -> None:
        """Leave something unfinished in the store."""
        self.administrator.s3.create_multipart_upload(Bucket=str(ID), Key="unfinished")


@pytest.fixture
def limited(
    sim: SimAWS, laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LimitedUser]:
    administrator = User(sim.environment())
    for name, value in sim.user(documented(), "limited").items():
        monkeypatch.setenv(name, value)
    (tmp_path / "workdir" / "output").mkdir(parents=True)
    (tmp_path / "workdir" / "data").write_text("data")
    laptop.workdir = str(tmp_path / "workdir")
    yield LimitedUser(sim, laptop, administrator)
    administrator.close()


def test_consoles_need_one_action_more(limited: LimitedUser) -> None:
    more = "ec2:GetConsoleOutput"
    assert f"`{more}` is optional" in PAGE.read_text()
    limited.laptop.create()
    until(limited.laptop.machines)
    [machine] = limited.laptop.machines()
    scaler = limited.laptop.cloud.scaler(ID)
    with pytest.raises(AuthError, match=more):
        scaler.console(limited.laptop.ctx, machine.id)
    policy = documented()
    policy["Statement"].append({"Effect": "Allow", "Action": more, "Resource": "*"})
    limited.allow(policy)
    assert scaler.console(limited.laptop.ctx, machine.id) == ""  # it only says that it runs
    limited.laptop.delete()


@pytest.mark.parametrize(("machine", "calls"), [("m", 1), ("t2.micro", 2)])
def test_a_console_of_which_only_the_beginning_is_told(
    limited: LimitedUser, machine: str, calls: int
) -> None:
    """Older types cannot tell the latest of it."""
    limited.allow({"Version": "2012-10-17", "Statement": [_ALL]})
    laptop = limited.laptop
    laptop.create(machine=machine)
    until(laptop.machines)
    [found] = laptop.machines()
    made = laptop.calls_of(lambda: laptop.cloud.scaler(ID).console(laptop.ctx, found.id))
    assert made.count("ec2:GetConsoleOutput") == calls
    laptop.delete()


@pytest.mark.slow
def test_the_policy_is_enough_and_every_action_is_needed(
    limited: LimitedUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = documented()
    used = _used(limited, monkeypatch)
    assert limited.sim.inventory() == []
    needed = set().union(*used.values()) - OPTIONAL
    assert set(actions(policy)) - REAL_ACCOUNTS_ONLY - DEFENCE == needed
    for action in sorted(needed):
        verb = next(name for name in used if action in used[name] and (name, action) != _LESS)
        _prepare(limited, policy, verb)
        limited.allow(without(policy, action))
        try:
            limited.verbs()[verb]()
        except (AuthError, Conflict):
            continue
        pytest.fail(f"{verb} works without {action}")


def _used(limited: LimitedUser, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Do all verbs, and return the actions that each of them needed."""
    used: dict[str, set[str]] = {}
    real = rights.needed
    now = ""

    def needed(call: Any, *more: Any) -> Any:
        found = real(call, *more)
        if "/limited" in call.who:
            used.setdefault(now, set()).update(need.action for need in found)
        return found

    monkeypatch.setattr(rights, "needed", needed)
    for name, verb in limited.verbs().items():
        now = name
        if name == "delete":
            limited.begin_upload()
        if name == "start":
            limited.suspend()
        verb()
    return used


def _prepare(limited: LimitedUser, policy: dict[str, Any], verb: str) -> None:
    """A task for the verb to be done on; for a creation, none."""
    limited.allow(policy)
    if verb in ("create", "list"):
        if limited.sim.inventory():
            limited.laptop.delete()
        return
    limited.laptop.create()
    limited.begin_upload()
    if verb == "start":
        limited.suspend()


def test_gangs_need_what_is_documented_and_nothing_else(limited: LimitedUser) -> None:
    policy, more, _ = blocks()
    both = {**policy, "Statement": [*policy["Statement"], *more["Statement"]]}
    laptop = limited.laptop
    assert actions(more) == ["ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup"]
    limited.allow(without(both, "ec2:CreatePlacementGroup"))
    with pytest.raises(AuthError, match="ec2:CreatePlacementGroup"):
        laptop.create(gang=True, parallelism=2)
    limited.allow(both)
    if limited.sim.inventory():
        laptop.delete()
    laptop.create(gang=True, parallelism=2)
    assert any(line.startswith("placement group") for line in limited.sim.inventory())
    limited.allow(without(both, "ec2:DeletePlacementGroup"))
    with pytest.raises(AuthError, match="ec2:DeletePlacementGroup"):
        laptop.delete()
    limited.allow(both)
    laptop.delete()
    assert limited.sim.inventory() == []


def test_with_a_given_profile_the_user_needs_no_right_to_make_roles(limited: LimitedUser) -> None:
    limited.administrator.make_profile()
    before = limited.sim.inventory()
    policy = documented()
    for statement in policy["Statement"]:
        if statement["Sid"] == "RolesOfMachines":
            statement["Action"] = ["iam:GetRole", "iam:GetInstanceProfile"]
        if statement["Sid"] == "RolesForMachines":
            statement["Resource"] = "arn:aws:iam::*:role/a-role"
    limited.allow(policy)
    found = limited.administrator.iam.get_instance_profile(InstanceProfileName="a-profile")
    limited.laptop.create(permission_set=found["InstanceProfile"]["Arn"])
    limited.laptop.stop()
    limited.laptop.delete()
    assert limited.sim.inventory() == before


def test_the_documented_policy_fits_into_a_managed_policy() -> None:
    text = json.dumps(documented(), separators=(",", ":"))
    assert len(text) <= 6144
