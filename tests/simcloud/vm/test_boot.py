"""Machines that cannot even start the agent say why, and are not replaced for ever."""

from __future__ import annotations

import pytest

from sojourn import Handle, State
from sojourn.clouds.vm import first_script, machine_settings
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.vm.sides import Side, gone
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


def ends(side: Side, handle: Handle) -> str:
    """Why it came to its end; there is no machine any more, and none comes."""
    until(lambda: handle.status().state is State.STOPPED, 60)
    side.account.wait(lambda: all(map(gone, side.account.instances())), 60)
    assert side.wanted() == [0]
    now = handle.status()
    assert (now.state, handle.machines()) == (State.STOPPED, [])
    told = [event.description for event in handle.events() if event.code == "boot-failed"]
    assert len(told) == len(side.account.instances())
    assert now.reason.endswith(f": {told[-1]}")
    return told[-1]


@pytest.mark.parametrize("before", [HIDDEN, OLD], ids=["none", "old"])
def test_an_image_without_a_python_for_the_agent(
    side: Side, lab: Lab, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    text = first_script._SCRIPT.removeprefix("#!/bin/sh\n")
    monkeypatch.setattr(
        first_script, "_SCRIPT", before.replace("{", "{{").replace("}", "}}") + text
    )
    handle = lab.create("true", parallelism=2)
    assert ends(side, handle) == "This image has no Python 3.10 or later"
    handle.delete()


def test_an_agent_that_cannot_be_fetched_for_long(
    side: Side, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 2.0)
    side.account.fail(side.fetched, who=side.machines, times=9, **side.denied)
    handle = lab.create("true")
    why = ends(side, handle)
    assert why.startswith("Could not start the agent: could not fetch agent-")
    assert why.endswith(".zip: HTTP Error 403: Forbidden")
    side.account.heal()
    handle.delete()


def test_upgrades_of_the_system_keep_away(
    side: Side, lab: Lab, monkeypatch: pytest.MonkeyPatch
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


def test_credentials_that_are_good_for_nothing_for_a_while(side: Side, lab: Lab) -> None:
    side.no_keys(600.0)
    handle = lab.create("echo here")
    side.account.wait(lambda: any(each.machine for each in side.account.instances()))
    [instance] = side.account.instances()
    assert instance.machine
    machine = instance.machine
    until(lambda: side.late in machine.console(), 60)
    side.keys_at_last(600.0)
    assert handle.wait().status is State.SUCCEEDED
    assert side.account.instances() == [instance]
    handle.delete()


def test_an_agent_that_is_not_in_the_store_and_a_new_start_when_it_is(side: Side, lab: Lab) -> None:
    side.account.capacity(None, None, False)
    handle = lab.create("echo here")
    stored = side.objects(handle.id)
    files = {path: stored[path] for path in stored if path.startswith("boot/")}
    for path in files:
        side.remove(handle.id, path)
    side.account.capacity(None, None, True)
    assert "this image has an unexpected Python version" in ends(side, handle)
    for path, content in files.items():
        side.put(handle.id, path, content)
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_an_agent_that_fails_again_and_again(
    side: Side, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_FAILURES", 2)
    side.account.fail(side.listed, who=side.machines, times=99, **side.denied)
    handle = lab.create("true")
    told = "The machine gave up after the agent failed 2 times; see its journal"
    assert ends(side, handle) == told
    side.account.heal()
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_a_process_that_is_killed_for_lack_of_memory_is_the_scripts_affair(
    side: Side, lab: Lab
) -> None:
    handle = lab.create("systemctl show sojourn.service --property OOMPolicy")
    handle.wait()
    assert log_of(handle) == ["OOMPolicy=continue"]
    handle.delete()
