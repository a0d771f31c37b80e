"""Tasks on Azure, with machines: what the spot market, capacity and time do to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.clouds.az.on_machine.setting import View, view
from sojourn.clouds.vm import first_script, machine_settings
from sojourn.core.errors import QuotaError
from tests.contract.clouds import az_kit
from tests.contract.clouds.az_kit import AzureKit
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.az.instances import Instance
from tests.simcloud.az_user import BLOB_CONTRIBUTOR, CONTRIBUTOR, User
from tests.simcloud.vm.scripts import RESUMING_SLOWLY
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

SAVING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/saved && exit 0
trap 'echo last words; echo saved > output/saved; exit 0' TERM
echo ready
while true; do sleep 0.05; done
"""
RESUMING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/checkpoint && exit 0
echo half > output/checkpoint
sleep 300
"""


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AzureKit]:
    """A subscription that has to be empty again at the end."""
    with in_use(az_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


def machine_of(kit: AzureKit, handle: Handle, rank: int = 0) -> Instance:
    """The instance that carries out a rank."""
    until(lambda: handle.status().ranks[rank].machine)
    wanted = handle.status().ranks[rank].machine
    [found] = [each for each in kit.account.instances() if each.vm_id == wanted]
    return found


def outcomes(handle: Handle) -> list[str]:
    return [report.outcome.value for report in handle.reports()]


def setting(kit: AzureKit, handle: Handle) -> View:
    """What keeps its machines alive, and when it ends."""
    user = User(kit.environment())
    path = f"resourceGroups/{handle.id}/providers/Microsoft.Insights/autoscalesettings/{handle.id}"
    found = view(user.get(path))
    user.close()
    return found


def test_a_spot_notice_lets_the_script_save_and_the_next_machine_goes_on(
    kit: AzureKit, lab: Lab
) -> None:
    kit.account.timing.notice = patience(20)
    handle = lab.create(SAVING, spot=0)
    until(lambda: log_of(handle) == ["ready"])
    lost = machine_of(kit, handle)
    kit.account.evict(lost, notice=True)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    assert log_of(handle, attempt=1)[-1] == "last words"
    assert lost.machine
    assert "notice: spot eviction" in lost.machine.console()
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_spot_losses_without_notice_three_in_a_row(kit: AzureKit, lab: Lab, tmp_path: Path) -> None:
    script = """
    mkdir -p output
    echo x >> output/count
    test $(wc -l < output/count) -lt 4 || exit 0
    touch output/stored-$SOJOURN_ATTEMPT
    sleep 300
    """
    handle = lab.create(script, spot=0)
    for attempt in (1, 2, 3):
        lab.until_stored(handle, f"stored-{attempt}", tmp_path / "look")
        kit.account.evict(machine_of(kit, handle), notice=False)
        until(lambda attempt=attempt: handle.status().ranks[0].attempt > attempt)  # type: ignore[misc]
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "lost", "lost", "succeeded"]
    handle.delete()
    assert lab.output()["count"] == "x\n" * 4


def lose_while_storing(kit: AzureKit, handle: Handle) -> None:
    """Take the machine away when some of what it stores is in the store, and others not yet."""

    begin, taken = "ranks/0000/data/000001/objects/", threading.Event()

    def stored() -> bool:
        return sum(begin in line for line in kit.leaks() if line.startswith("blob")) > 1

    # Nothing more comes through until it is gone, however long that takes.
    kit.account.watch(lambda _: stored() and taken.wait(patience(60)))
    kit.appear("go")
    until(stored, 60)
    kit.account.evict(kit.account.instances()[-1], notice=False)
    taken.set()
    kit.account.watch(lambda _: None)


def test_the_cloud_tells_that_a_machine_is_gone_and_no_silence_is_waited_for(
    kit: AzureKit, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_TTL", 3600.0)
    handle = lab.create(RESUMING, spot=0)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    kit.account.evict(machine_of(kit, handle), notice=False)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_while_it_uploads_leaves_no_half_snapshot(
    kit: AzureKit, lab: Lab
) -> None:
    script = """
    mkdir -p output
    if test $SOJOURN_ATTEMPT = 1; then
        mkdir /root/made
        for n in $(seq 30); do head -c 8M /dev/urandom > /root/made/$n; done
        (cd /root/made && sha256sum [0-9]* > sums)
        echo ready
        until test -f /dev/shm/go; do sleep 0.05; done
        mv /root/made output/made
        sleep 300
    fi
    test ! -e output/made || (cd output/made && sha256sum --quiet -c sums) || exit 9
    rm -rf output/made
    """
    handle = lab.create(script, spot=0)
    until(lambda: log_of(handle) == ["ready"], 60)
    lose_while_storing(kit, handle)
    assert handle.wait().status is State.SUCCEEDED, log_of(handle)
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_during_its_last_snapshot_did_not_succeed(
    kit: AzureKit, lab: Lab
) -> None:
    script = """
    mkdir -p output
    if test $SOJOURN_ATTEMPT = 1; then
        head -c 250M /dev/urandom > /root/made
        echo ready
        until test -f /dev/shm/go; do sleep 0.05; done
        mv /root/made output/made
    fi
    rm -f output/attempt-*
    touch output/attempt-$SOJOURN_ATTEMPT
    """
    handle = lab.create(script, spot=0)
    until(lambda: log_of(handle) == ["ready"], 60)
    lose_while_storing(kit, handle)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete(fetch=False)


def test_the_spot_market_takes_one_rank_of_three(kit: AzureKit, lab: Lab, tmp_path: Path) -> None:
    kit.account.timing.notice = patience(20)
    script = """
    mkdir -p output
    echo $SOJOURN_ATTEMPT > output/rank-$SOJOURN_RANK
    test $SOJOURN_RANK != 1 -o $SOJOURN_ATTEMPT != 1 || sleep 300
    until test -f /dev/shm/go; do sleep 0.05; done
    """
    handle = lab.create(script, spot=0, parallelism=3)
    lab.until_stored(handle, "rank-1", tmp_path / "look")
    kit.account.evict(machine_of(kit, handle, 1), notice=True)
    until(lambda: handle.status().ranks[1].attempt == 2, 60)
    until(lambda: all(rank.machine for rank in handle.status().ranks))
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"rank-0": "1\n", "rank-1": "2\n", "rank-2": "1\n"}


def test_without_capacity_a_task_is_queued_and_says_why_until_there_is_some(
    kit: AzureKit, lab: Lab
) -> None:
    kit.account.capacity("Standard_F8s_v2", None, False)
    handle = lab.create("echo here", spot=0)
    until(lambda: "no spot capacity" in handle.status().reason.lower())
    assert handle.status().state is State.QUEUED
    kit.account.capacity("Standard_F8s_v2", None, True)
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["here"]
    handle.delete()


def test_two_tasks_at_once_do_not_touch_each_other(lab: Lab) -> None:
    script = 'mkdir -p output; echo "$WHICH" > output/$WHICH; echo "$WHICH"'
    handles = [lab.create(script, environment={"WHICH": which}) for which in ("one", "two")]
    assert [handle.wait().status for handle in handles] == [State.SUCCEEDED] * 2
    assert [log_of(handle) for handle in handles] == [["one"], ["two"]]
    handles[0].delete()
    assert lab.output() == {"one": "one\n"}
    assert log_of(handles[1]) == ["two"]
    handles[1].delete()
    assert lab.output() == {"one": "one\n", "two": "two\n"}


class Laptop:
    """Another computer of the same user: the same keys, and nothing else."""

    def __init__(self, kit: AzureKit, home: Path) -> None:
        self.home = home
        home.mkdir()
        kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd() / "src")}
        self._environment = {**kept, **kit.account.environment(), "HOME": str(home)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sojourn.cli", *arguments],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience(100),
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.parametrize("container", ["", "shared", "shared/some/where=1", "shared/"])
def test_a_task_is_at_hand_from_any_laptop(
    kit: AzureKit, lab: Lab, tmp_path: Path, container: str
) -> None:
    options = {"account": "anaccount"} if container else {}
    if container:
        make_container(kit, "shared")
    storage = sojourn.Storage(
        workdir=str(lab.workdir), output="output", container=container, container_opts=options
    )
    handle = lab.create("mkdir output; echo made > output/file; echo told", storage=storage)
    other = Laptop(kit, tmp_path / "other")
    listed = other.run("list", "--json").splitlines()
    assert [json.loads(row)["id"] for row in listed] == [handle.id]
    assert "told" in other.run("logs", "--follow", handle.id)
    shown = other.run("status", "--json", handle.id)
    assert json.loads(shown)["state"] == "succeeded"
    assert "PRIVATE KEY" not in shown
    other.run("pull", handle.id, "--into", str(other.home / "pulled"))
    assert (other.home / "pulled/output/file").read_text() == "made\n"
    other.run("delete", handle.id, "--into", str(other.home / "home"))
    assert (other.home / "home/output/file").read_text() == "made\n"
    if container:
        assert [line.split()[0] for line in kit.leaks()] == [
            *("containers", "resourceGroups", "storageAccounts")
        ]
        remove_group(kit)


def test_stop_and_start(kit: AzureKit, lab: Lab) -> None:
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    handle.stop()
    assert handle.status().state is State.STOPPED
    assert not handle.machines()
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_what_takes_longer_to_store_than_a_shutdown_may_take_is_kept(
    kit: AzureKit, lab: Lab
) -> None:
    kit.account.timing.shutdown = 0.5
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    kit.account.delay(0.5)
    handle.stop()
    kit.account.delay(0)
    assert outcomes(handle) == ["preempted"]
    assert log_of(handle)[-1] == "last words"
    handle.delete()
    assert lab.output() == {"attempts": "1\n", "saved": "saved\n"}


def test_a_machine_that_breaks_down_and_starts_again_goes_on(
    kit: AzureKit, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It does not wait for its own lease to run out.
    monkeypatch.setattr(machine_settings, "_TTL", 600.0)
    handle = lab.create(RESUMING_SLOWLY)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    instance = machine_of(kit, handle)
    kit.account.panic(instance)
    machine = instance.machine
    assert machine
    timer = ("systemctl", "is-active", "--quiet", "sojourn-end.timer")
    until(lambda: machine.run(*timer, check=False).returncode == 0)
    until(lambda: handle.status().ranks[0].attempt == 2)
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    assert kit.account.instances() == [instance]
    until(lambda: instance.state == "gone")
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "checkpoint": "half\n"}


def test_a_machine_that_its_script_reboots_is_left_for_another(kit: AzureKit, lab: Lab) -> None:
    script = SAVING.replace("echo ready", "echo ready; systemctl reboot")
    handle = lab.create(script)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    until(lambda: {each.state for each in kit.account.instances()} == {"gone"})
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_a_machine_that_is_shut_down_stores_its_work_before_the_network_goes(
    kit: AzureKit, lab: Lab
) -> None:
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    machine = machine_of(kit, handle).machine
    assert machine
    kit.account.delay(0.1)
    machine.power_button()
    assert machine.wait(patience(60))
    kit.account.delay(0)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_a_timeout_ends_the_machine_and_keeps_its_work(kit: AzureKit, lab: Lab) -> None:
    handle = lab.create(
        "mkdir output; echo kept > output/file; sleep 300", timeout=ceil(patience(2))
    )
    assert handle.wait().status is State.TIMED_OUT
    until(lambda: not handle.machines())
    assert [each.state for each in kit.account.instances()] == ["gone"]
    handle.delete()
    assert lab.output() == {"file": "kept\n"}


def make_container(kit: AzureKit, name: str) -> None:
    """A container of the user's, in a storage account and a group of the user's."""
    user = User(kit.environment())
    user.make_container(user.make_group(), name=name)
    user.close()


def remove_group(kit: AzureKit) -> None:
    user = User(kit.environment())
    user.delete("resourceGroups/a-group")
    user.close()


def remove_identity(kit: AzureKit, user: User) -> None:
    """With its group and its roles; nothing else is left."""
    left = [line for line in kit.leaks() if "role assignment" not in line]
    assert [line.split()[0] for line in left] == ["resourceGroups", "userAssignedIdentities"]
    for line in kit.leaks():
        if "role assignment" in line:
            name = line.split()[2]
            scope = f"/subscriptions/{user.subscription}"
            user.delete(f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}")
    user.close()
    remove_group(kit)


def test_an_identity_that_cannot_leave_the_scale_set_ends_the_task_on_the_first_machine(
    kit: AzureKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_RIGHTS_WITHIN", 1.0)
    user = User(kit.environment())
    group = user.make_group()
    identity = user.make_identity(group)
    user.assign(
        f"/subscriptions/{user.subscription}",
        BLOB_CONTRIBUTOR,
        identity["properties"]["principalId"],
    )
    kit.account.fail("roleAssignments.list*", code="AuthorizationFailed", status=403)
    handle = lab.create("mkdir output; echo made > output/file", permission_set=identity["id"])
    until(lambda: handle.status().state is State.FAILED)
    action = "Microsoft.Insights/autoscaleSettings/write"
    assert f"permission_set is not allowed {action}, so" in handle.status().reason
    assert len(kit.account.instances()) == 1
    # It can neither leave nor say that it is ready: Azure takes it when its time is over.
    kit.account.timing.deletion = 0.5
    handle.delete()
    assert lab.output() == {}
    remove_identity(kit, user)


def test_an_identity_that_may_not_use_the_store_is_told_though_machines_cannot_tell(
    kit: AzureKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 2.0)
    user = User(kit.environment())
    identity = user.make_identity(user.make_group())
    user.assign(
        f"/subscriptions/{user.subscription}",
        CONTRIBUTOR,
        identity["properties"]["principalId"],
    )
    kit.account.fail("roleAssignments.list*", code="AuthorizationFailed", status=403)
    handle = lab.create("true", permission_set=identity["id"])
    until(lambda: handle.status().state is State.STOPPED, 60)
    assert "permission_set is not allowed to: docs/azure.md" in handle.status().reason
    assert len(kit.account.instances()) == 1
    kit.account.heal()
    handle.delete()
    remove_identity(kit, user)


def test_a_machine_that_is_taken_away_while_it_boots_goes_as_soon_as_it_can(
    kit: AzureKit, lab: Lab
) -> None:
    handle = lab.create("sleep 300")
    kit.account.wait(lambda: [each.machine for each in kit.account.instances()])
    handle.stop()
    assert [each.state for each in kit.account.instances()] == ["gone"]
    handle.delete()


def test_a_machine_without_python_says_so_and_leaves_for_good(
    kit: AzureKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        first_script, "_SCRIPT", first_script._SCRIPT.replace('[ "$python" != none ]', "false")
    )
    handle = lab.create("true", parallelism=2)
    until(lambda: "no Python 3.10" in handle.status().reason, 60)
    until(lambda: {each.state for each in kit.account.instances()} == {"gone"}, 60)
    assert setting(kit, handle).least == 0
    assert len(kit.account.instances()) <= 3  # if both wrote the same number at the same moment
    assert handle.status().state is State.STOPPED
    handle.delete()


def test_a_machine_that_switches_itself_off_is_replaced_while_somebody_looks(
    kit: AzureKit, lab: Lab, tmp_path: Path
) -> None:
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    instance = machine_of(kit, handle)
    assert instance.machine
    dead = "rm -r /opt/sojourn/lib; systemctl kill -s KILL sojourn.service; systemctl poweroff"
    instance.machine.run("sh", "-c", dead, check=False)
    until(lambda: instance.state == "stopped", 30)
    until(lambda: handle.status().state is State.SUCCEEDED, 90)
    until(lambda: {each.state for each in kit.account.instances()} == {"gone"}, 60)
    handle.delete()


def test_a_quota_is_told_at_once_and_nothing_is_left(kit: AzureKit, lab: Lab) -> None:
    kit.account.quota("cores", "westus2", 4)
    with pytest.raises(QuotaError, match="'cores Cores' of 4 is too small"):
        lab.create("true")
    assert kit.leaks() == []


def test_every_machine_puts_off_the_end_and_then_it_comes(
    kit: AzureKit, lab: Lab, tmp_path: Path
) -> None:
    week, life = 7 * 86400, 600 + 3600
    kit.account.capacity(None, None, False)
    begun = int(time.time())
    handle = lab.create("mkdir -p output; touch output/$SOJOURN_ATTEMPT; sleep 300", timeout=600)
    assert begun <= setting(kit, handle).end.timestamp() - week - life <= time.time()
    kit.account.capacity(None, None, True)
    until(lambda: handle.status().ranks[0].attempt == 1, 60)
    until(lambda: setting(kit, handle).end.timestamp() < time.time() + week)
    first = setting(kit, handle).end
    assert begun <= first.timestamp() - life <= time.time()
    kit.lose_agent(handle, rank=0)
    until(lambda: handle.status().ranks[0].attempt == 2, 60)
    until(lambda: setting(kit, handle).end > first)
    # Nobody can reach anything any more, and the time is over.
    kit.account.advance(life + 60)
    kit.account.wait(lambda: kit.account.instances()[-1].state == "gone", 60)
    until(lambda: (handle.status().state, handle.machines()) == (State.STOPPED, []))
    handle.delete()


def test_ranks_that_end_at_the_same_moment_leave_none_behind(kit: AzureKit, lab: Lab) -> None:
    handle = lab.create("until test -f /dev/shm/go; do sleep 0.05; done", parallelism=3)
    until(lambda: all(rank.machine for rank in handle.status().ranks), 60)
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    until(lambda: {each.state for each in kit.account.instances()} == {"gone"}, 60)
    until(lambda: setting(kit, handle).least == 0)
    handle.delete()
