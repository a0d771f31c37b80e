"""Machines that cannot even start the agent say why, and are not replaced for ever."""

from __future__ import annotations

import pytest

from sojourn import Handle, State
from sojourn.clouds.vm import first_script, machine_settings
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.aws import backends
from tests.support.waiting import until

pytestmark = pytest.mark.slow

# Another PATH, with all that the usual one has but Python.
HIDDEN = """#!/bin/sh
mkdir /run/bin
ln -s /usr/bin/* /usr/sbin/* /run/bin/ 2>/dev/null
rm -f /run/bin/python*
PATH=/run/bin
"""
# And a Python that says that it is an old one.
OLD = (
    HIDDEN
    + r"""cat >/run/bin/python3 <<'OLD'
#!/bin/sh
exec /usr/bin/env PATH=/usr/local/bin:/usr/bin:/bin python3 -c \
    "import sys; sys.version_info = (3, 9, 2); $2"
OLD
chmod +x /run/bin/python3
"""
)


def ends(kit: AwsKit, handle: Handle) -> str:
    """Why it came to its end; there is no machine any more, and none comes."""
    until(lambda: handle.status().state is State.STOPPED, 60)
    kit.account.wait(lambda: {i.state for i in kit.account.instances()} == {"terminated"}, 60)
    assert [group.desired for group in kit.account._groups.all()] == [0]
    now = handle.status()
    assert (now.state, handle.machines()) == (State.STOPPED, [])
    told = [event.description for event in handle.events() if event.code == "boot-failed"]
    assert len(told) == len(kit.account.instances())
    assert now.reason.endswith(f": {told[-1]}")
    return told[-1]


@pytest.mark.parametrize("before", [HIDDEN, OLD], ids=["none", "old"])
def test_an_image_without_a_python_for_the_agent(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    text = first_script._SCRIPT.removeprefix("#!/bin/sh\n")
    monkeypatch.setattr(
        first_script, "_SCRIPT", before.replace("{", "{{").replace("}", "}}") + text
    )
    handle = lab.create("true", parallelism=2)
    assert ends(kit, handle) == "This image has no Python 3.10 or later"
    handle.delete()


def test_an_agent_that_cannot_be_fetched_for_long(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 2.0)
    kit.account.fail("s3:GetObject", who="*assumed-role*", code="AccessDenied", status=403, times=9)
    handle = lab.create("true")
    why = ends(kit, handle)
    assert why.startswith("Could not start the agent: could not fetch agent-")
    assert why.endswith(".zip: HTTP Error 403: Forbidden")
    kit.account.heal()
    handle.delete()


def test_upgrades_of_the_system_keep_away(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = first_script._SCRIPT.removeprefix("#!/bin/sh\n")
    monkeypatch.setattr(first_script, "_SCRIPT", f"#!/bin/sh\nmkdir /etc/needrestart\n{text}")
    script = r"""
    systemctl is-enabled apt-daily.timer apt-daily-upgrade.timer
    perl -e 'do "/etc/needrestart/conf.d/sojourn.conf"; die $@ if $@;
        ($re) = keys %{$nrconf{override_rc}};
        print "spared: $nrconf{override_rc}{$re}\n" if "sojourn.service" =~ /$re/'
    """
    handle = lab.create(script)
    handle.wait()
    assert log_of(handle) == ["masked", "masked", "spared: 0"]
    handle.delete()


def test_a_role_that_gives_no_keys_for_a_while(kit: AwsKit, lab: Lab) -> None:
    kit.account.timing.keys_ready = 6.0
    handle = lab.create("echo here")
    assert handle.wait().status is State.SUCCEEDED
    [instance] = kit.account.instances()
    assert instance.machine
    assert (
        "role of this machine has no keys yet: AssumeRoleUnauthorizedAccess"
        in instance.machine.console()
    )
    handle.delete()


def test_a_machine_that_never_gets_keys_goes_and_is_replaced(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 1.0)
    monkeypatch.setattr(
        first_script, "_SCRIPT", first_script._SCRIPT.replace(" in 0 30 60;", " in 0 1;")
    )
    kit.account.timing.keys_ready = 3600.0
    handle = lab.create("echo here")
    kit.account.wait(lambda: kit.account.instances()[:1], 30)
    [first] = kit.account.instances()
    kit.account.wait(lambda: first.state == "terminated", 60)
    assert first.record.state_reason.code == "Client.InstanceInitiatedShutdown"
    kit.account.timing.keys_ready = 0.0
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_an_agent_that_is_not_in_the_store_and_a_new_start_when_it_is(
    kit: AwsKit, lab: Lab
) -> None:
    kit.account.capacity(None, None, False)
    handle = lab.create("echo here")
    store = backends.s3()
    files = {
        key: item.value
        for key, item in store.buckets[handle.id].keys.items()
        if key.startswith("boot/")
    }
    for key in files:
        store.delete_object(handle.id, key)
    kit.account.capacity(None, None, True)
    assert "this image has an unexpected Python version" in ends(kit, handle)
    for key, content in files.items():
        store.put_object(handle.id, key, content)
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_an_agent_that_fails_again_and_again(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_FAILURES", 2)
    denied = {"code": "AccessDenied", "status": 403}
    kit.account.fail("s3:ListObjectsV2", who="*assumed-role*", times=99, **denied)  # type: ignore[arg-type]
    handle = lab.create("true")
    told = "The machine gave up after the agent failed 2 times; see its journal"
    assert ends(kit, handle) == told
    calls = [call for call in kit.account.calls if ":assumed-role/" in call.who]
    put_off = [call for call in calls if call.operation == "PutScheduledUpdateGroupAction"]
    assert len(put_off) == 1
    kit.account.heal()
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_a_process_that_is_killed_for_lack_of_memory_is_the_scripts_affair(
    kit: AwsKit, lab: Lab
) -> None:
    handle = lab.create("systemctl show sojourn.service --property OOMPolicy")
    handle.wait()
    assert log_of(handle) == ["OOMPolicy=continue"]
    handle.delete()
