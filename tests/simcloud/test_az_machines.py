"""A simulated Azure with machines that run: what they see, how they end, a whole loop."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from sojourn.agent.wheels import locked
from tests.simcloud.az import metadata
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.instances import Instance
from tests.simcloud.az_user import (
    BLOB_CONTRIBUTOR,
    CONTRIBUTOR,
    MACHINE_CONTRIBUTOR,
    User,
    scale_set,
)
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import MachineError
from tests.support.waiting import until

_WHEELS = Path(__file__).parents[2] / ".venv" / "wheels"
_PRELUDE = """\
#!/bin/bash
set -e
imds() { curl -sf -H Metadata:true "http://169.254.169.254/metadata/$1"; }
about() { imds "instance/compute/$1?api-version=2021-02-01&format=text"; }
token() {
  imds "identity/oauth2/token?api-version=2018-02-01&resource=$1" |
    sed 's|.*"access_token": "\\([^"]*\\)".*|\\1|'
}
blob() { # of the container
  name=$1; shift
  curl -sSf -H "Authorization: Bearer $(token https://storage.azure.com/)" \\
    -H 'x-ms-version: 2023-11-03' -H 'x-ms-blob-type: BlockBlob' "$@" \\
    "https://anaccount.blob.core.windows.net/box/$name"
}
me=$(about resourceId)
arm() { # the last argument is the path
  curl -sSf -H "Authorization: Bearer $(token https://management.azure.com/)" \\
    "${@:1:$#-1}" "https://management.azure.com${*: -1}"
}
leave() { # the scale set, which has one instance less from then on
  arm -X POST -H 'Content-Type: application/json' \\
    -d "{\\"instanceIds\\": [\\"${me##*/}\\"]}" \\
    "${me%/virtualMachines/*}/delete?api-version=2024-11-01"
}
"""


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """What obstore opens once for the whole process is nothing that a machine leaves."""
    obstore.put(MemoryStore(), "key", b"")


@pytest.fixture
def az(host: Host) -> Iterator[SimAzure]:
    with SimAzure(host) as az:
        yield az


def _script(*lines: str) -> bytes:
    return "\n".join([_PRELUDE, *lines, ""]).encode()


def _make(user: User, script: bytes, capacity: int = 1, **more: Any) -> str:
    """The id of a scale set whose machines may write to the container and leave."""
    group = user.make_group()
    identity = user.make_identity(group)
    principal = identity["properties"]["principalId"]
    user.assign(user.make_container(group), BLOB_CONTRIBUTOR, principal)
    made = str(user.make_set(group, 0, script=script, identity=identity["id"], **more)["id"])
    user.assign(made, MACHINE_CONTRIBUTOR, principal)
    user.finish(user.call("PATCH", made, {"sku": {"capacity": capacity}}))
    return made


def _machine(instance: Instance) -> RunningMachine:
    assert instance.machine is not None
    return instance.machine


def _content(user: User, key: str) -> str:
    try:
        return bytes(obstore.get(user.store(), key).bytes()).decode()
    except FileNotFoundError:
        return ""


def _keep(user: User, target: str, number: int) -> str:
    """Have Azure keep this number of instances."""
    limits = dict.fromkeys(("minimum", "default", "maximum"), str(number))
    profile = {"name": "all", "capacity": limits, "rules": []}
    properties = {"enabled": True, "targetResourceUri": target, "profiles": [profile]}
    path = f"{target.partition('/providers/')[0]}/providers/Microsoft.Insights"
    body = {"location": "eastus", "properties": properties}
    return str(user.put(f"{path}/autoscalesettings/keeper", body)["id"])


def test_a_whole_loop(az: SimAzure, az_user: User) -> None:
    """Launch, write, be evicted, be replaced, append, leave for good; nothing is left.

    Nobody outside does anything: Azure keeps the number of instances, until the machine says that
    it need not any more.
    """
    script = _script(
        "blob log > /tmp/log || true",
        "about name >> /tmp/log; echo >> /tmp/log",
        "blob log -T /tmp/log",
        "[ $(wc -l < /tmp/log) = 2 ] || exec sleep 1000",
        "until blob ready; do sleep 0.1; done",
        "keeper=${me%/providers/*}/providers/Microsoft.Insights/autoscalesettings/keeper",
        "arm -X DELETE $keeper?api-version=2015-04-01",
        "leave",
        "sleep 1000",
    )
    made = _make(az_user, script, spot="Delete")
    keeper = _keep(az_user, made, 1)
    [principal] = {
        each["principalId"]
        for each in az_user.get(made)["identity"]["userAssignedIdentities"].values()
    }
    az_user.assign(keeper, CONTRIBUTOR, principal)
    until(lambda: _content(az_user, "log").split() == ["a-set_0"])
    az.evict(az.instances()[0], notice=False)
    until(lambda: _content(az_user, "log").split() == ["a-set_0", "a-set_1"])
    obstore.put(az_user.store(), "ready", b"")
    second = az.instances()[1]
    until(lambda: second.gone)
    assert az_user.get(made)["sku"]["capacity"] == 0
    assert [call.name for call in az.calls if call.who == "an-identity"][-2:] == [
        "autoscaleSettings.delete",
        "virtualMachineScaleSets.deleteInstances",
    ]
    az_user.delete("resourceGroups/a-group")
    assert az.inventory() == []


def test_the_metadata_service_wants_its_header_and_a_version(az: SimAzure, az_user: User) -> None:
    made = _make(az_user, b"#!/bin/sh\n", spot="Delete")
    [instance] = az.instances()

    def ask(path: str, *options: str) -> tuple[Any, int]:
        url = f"http://169.254.169.254/metadata/{path}"
        asked = _machine(instance).run("curl", "-s", "-w", "\n%{http_code}", *options, url)
        text, _, status = asked.stdout.rpartition("\n")
        return text if "format=text" in path else json.loads(text or "null"), int(status)

    header = ("-H", "Metadata: true")
    version = "api-version=2021-02-01"
    assert ask(f"instance?{version}")[1] == 400
    assert "newest-versions" in ask("instance", *header)[0]
    assert ask("instance?api-version=1999-01-01", *header)[1] == 400
    assert ask(f"instance?{version}", *header, "-H", "X-Forwarded-For: me")[1] == 400
    about, _ = ask(f"instance?{version}", *header)
    compute = about["compute"]
    assert (compute["name"], compute["vmScaleSetName"]) == ("a-set_0", "a-set")
    assert (compute["location"], compute["priority"]) == ("eastus", "Spot")
    assert compute["customData"] == ""
    assert compute["resourceId"].lower() == f"{made}/virtualMachines/0".lower()
    assert ask(f"instance/compute/vmSize?{version}&format=text", *header)[0] == "Standard_D2s_v5"
    assert ask(f"instance/nothing?{version}", *header)[1] == 404
    identity = "identity/oauth2/token?api-version=2018-02-01"
    told, status = ask(f"{identity}&resource=https://storage.azure.com/", *header)
    assert (status, told["token_type"]) == (200, "Bearer")
    assert int(told["expires_on"]) > time.time()
    assert ask(f"{identity}&resource=https://example.com/", *header)[1] == 400
    other = f"{identity}&resource=https://storage.azure.com/&client_id=x"
    assert ask(other, *header)[0]["error_description"] == "Identity not found"
    assert _machine(instance).run("hostname").stdout.strip() == "a-set000000"


def test_who_asks_about_itself_too_often_is_refused(
    az: SimAzure, az_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    az.timing.metadata_rate = 5
    _make(az_user, b"#!/bin/sh\n")
    seconds = [0.0]  # a busy machine would not ask ten times in one
    monkeypatch.setattr(metadata, "monotonic", lambda: seconds[0])
    url = "http://169.254.169.254/metadata/instance?api-version=2021-02-01"
    ask = f"curl -s -o /dev/null -w '%{{http_code}} ' -H Metadata:true '{url}'"
    asking = f"for n in $(seq 10); do {ask}; done"
    for _ in range(2):
        said = _machine(az.instances()[0]).run("sh", "-c", asking).stdout.split()
        assert said == ["200"] * 5 + ["429"] * 5
        seconds[0] += 1


def test_a_new_machine_has_no_tokens_for_a_while(az: SimAzure, az_user: User) -> None:
    az.timing.identity_ready = 3600
    _make(az_user, _script("until blob own -T /etc/hostname; do sleep 0.1; done"))
    [instance] = az.instances()
    url = "http://169.254.169.254/metadata/identity/oauth2/token"
    query = "api-version=2018-02-01&resource=https://storage.azure.com/"
    shown = ("-o", "/dev/null", "-w", "%{http_code}", "-H", "Metadata: true", f"{url}?{query}")
    assert _machine(instance).run("curl", "-s", *shown).stdout == "410"
    az.advance(3601)
    until(lambda: _content(az_user, "own"))


def test_evictions_are_told_before_and_can_be_approved(az: SimAzure, az_user: User) -> None:
    script = _script(
        "events() { imds 'scheduledevents?api-version=2020-07-01'; }",
        # All machines of the set are told of all events
        'until events | grep Preempt | grep -q "\\[\\"$(about name)\\"\\]"; do sleep 0.05; done',
        "events; echo",
        'id=$(events | sed \'s|.*"EventId": "\\([^"]*\\)".*|\\1|\')',
        'curl -sf -H Metadata:true -d "{\\"StartRequests\\": [{\\"EventId\\": \\"$id\\"}]}" \\',
        "  'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01'",
        "sleep 1000",
    )
    az.timing.notice = 600
    made = _make(az_user, script, 2, spot="Delete")
    first, second = az.instances()
    machine = _machine(first)
    az.evict(first, notice=True)
    until(lambda: first.gone)
    assert not machine.alive
    [line] = [line for line in machine.console().splitlines() if "Preempt" in line]
    [event] = json.loads(line)["Events"]
    assert (event["EventStatus"], event["Resources"]) == ("Scheduled", ["a-set_0"])
    assert event["NotBefore"].endswith("GMT")
    assert second.state == "running"
    assert az_user.get(made)["sku"]["capacity"] == 1


def test_deletions_are_told_before_if_this_was_asked_for(az: SimAzure, az_user: User) -> None:
    script = _script(
        "events() { imds 'scheduledevents?api-version=2020-07-01'; }",
        "until events | grep -q Terminate; do sleep 0.05; done",
        "blob told -T /etc/hostname",
        "sleep 1000",
    )
    group = az_user.make_group()
    body = scale_set(az_user.make_network(group), 0, script=script)
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    body["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] = notice
    identity = az_user.make_identity(group)
    box = az_user.make_container(group)
    az_user.assign(box, BLOB_CONTRIBUTOR, identity["properties"]["principalId"])
    body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {identity["id"]: {}}}
    path = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/a-set"
    az_user.put(path, {**body, "sku": {**body["sku"], "capacity": 1}})
    answer = az_user.call("POST", f"{path}/delete", {"instanceIds": ["0"]})
    assert az_user.get(path)["sku"]["capacity"] == 0
    until(lambda: _content(az_user, "told"))
    [shown] = az_user.machines(path)
    assert shown["properties"]["provisioningState"] == "Deleting"
    az.advance(301)
    az_user.finish(answer)
    assert az_user.machines(path) == []


def _goes(instance: Instance) -> bool:
    """Have it power itself off. The command may be killed by that before it has returned."""
    if instance.state != "running":
        return True
    try:
        return _machine(instance).run("poweroff", check=False).returncode == 0
    except MachineError:
        return True


def test_who_powers_itself_off_stays_and_who_breaks_down_comes_back(
    az: SimAzure, az_user: User
) -> None:
    made = _make(az_user, _script("date > /root/booted", "sleep 1000"))
    [instance] = az.instances()
    until(lambda: _machine(instance).run("cat", "/root/booted", check=False).stdout)
    az.panic(instance)
    assert _machine(instance).run("cat", "/root/booted").stdout
    assert instance.state == "running"
    until(lambda: _goes(instance))
    until(lambda: instance.state == "stopped")
    [shown] = az_user.machines(made)
    assert shown["properties"]["instanceView"]["statuses"][-1]["code"] == "PowerState/stopped"
    assert az_user.get(made)["sku"]["capacity"] == 1


def test_an_evicted_instance_that_is_restored_has_its_disk(az: SimAzure, az_user: User) -> None:
    """Unless it is deleted: its first script does not run again."""
    restore = {"spotRestorePolicy": {"enabled": True, "restoreTimeout": "PT1H"}}
    script = _script("date > /root/booted", 'blob "$(date +%s%N)" -T /etc/hostname')
    _make(az_user, script, spot="Deallocate", properties=restore)
    [instance] = az.instances()
    until(lambda: len(obstore.list(az_user.store()).collect()) == 1)
    former = _machine(instance)
    az.evict(instance, notice=False)
    until(lambda: instance.state == "running" and _machine(instance) is not former)
    assert _machine(instance).run("cat", "/root/booted").stdout
    assert len(obstore.list(az_user.store()).collect()) == 1


def test_rights_of_a_machine_are_its_identitys(az: SimAzure, az_user: User) -> None:
    script = _script(
        "blob own -T /etc/hostname && echo may write",
        'arm "${me%/providers/*}?api-version=2025-04-01" || echo may not look around',
        'arm "${me%/virtualMachines/*}?api-version=2024-11-01" > /tmp/set',
        "grep -q capacity /tmp/set && echo may look",
        "echo that is all; sleep 1000",
    )
    _make(az_user, script)
    [instance] = az.instances()
    until(lambda: "that is all" in _machine(instance).console())
    said = _machine(instance).console()
    assert "may write" in said
    assert "may not look around" in said
    assert "AuthorizationFailed" in [call.error for call in az.calls]
    assert "may look" in said


def test_tokens_outlive_their_identity(az: SimAzure, az_user: User) -> None:
    """Who takes an identity away has to take its roles, too; new tokens there are none."""
    script = _script(
        "rights=$(token https://storage.azure.com/)",
        'token() { echo "$rights"; }',
        "blob begun -T /etc/hostname",
        "until blob gone; do sleep 0.1; done",
        "blob late -T /etc/hostname",
        "ask='identity/oauth2/token?api-version=2018-02-01&resource=https://storage.azure.com/'",
        'imds "$ask" || echo no more tokens',
        "sleep 1000",
    )
    made = _make(az_user, script)
    [identity] = az_user.get(made)["identity"]["userAssignedIdentities"]
    until(lambda: _content(az_user, "begun"))
    az_user.delete(identity)
    obstore.put(az_user.store(), "gone", b"")
    until(lambda: _content(az_user, "late"))
    until(lambda: "no more tokens" in _machine(az.instances()[0]).console())


def test_obstore_works_inside_as_outside(az: SimAzure, az_user: User) -> None:
    """With the authorities of the system, and by names that only resolve there."""
    python = f"3{sys.version_info.minor}"
    needed = [each for each in locked(python, platform.machine()) if each.name == "obstore"]
    wheels = [path for each in needed for path in _WHEELS.glob(f"{each.sha256}/*.whl")]
    if not wheels:
        pytest.skip("the wheels of machines are not there: make test fetches them")
    program = (
        "import sys, json, urllib.request; sys.path.insert(0, '/opt/obstore'); import obstore\n"
        "from obstore.store import AzureStore\n"
        "store = AzureStore('box', account_name='anaccount', bearer_token=sys.argv[1])\n"
        "obstore.put(store, 'inside', b'it works', mode='create')\n"
    )
    script = _script(
        "blob wheel > /tmp/wheel.zip",
        "python3 -m zipfile -e /tmp/wheel.zip /opt/obstore",
        f"python3 - $(token https://storage.azure.com/) <<'EOF'\n{program}EOF",
    )
    group = az_user.make_group()
    az_user.make_container(group)
    obstore.put(az_user.store(), "wheel", wheels[0].read_bytes())
    _make(az_user, script)
    until(lambda: _content(az_user, "inside") == "it works")
