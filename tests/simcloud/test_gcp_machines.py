"""A simulated Google Cloud project with machines that run: what they see, how they end."""

from __future__ import annotations

import base64
import json
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from sojourn.agent.wheels import locked
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.project import NUMBER, PROJECT
from tests.simcloud.gcp_user import SCOPE, ZONE, User
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, MachineError
from tests.support.waiting import until

_ROOT = "http://metadata.google.internal/computeMetadata/v1"
_PRELUDE = f"""\
#!/bin/bash
set -e
meta() {{ curl -sf -H 'Metadata-Flavor: Google' "{_ROOT}/$1"; }}
name=$(meta instance/name)
zone=$(basename "$(meta instance/zone)")
token=$(meta instance/service-accounts/default/token | sed 's/.*access_token": "//; s/".*//')
call() {{ curl -sSf -H "Authorization: Bearer $token" "$@"; }}
"""
_WHEELS = Path(sys.prefix) / "wheels"
_GROUP = f"projects/{PROJECT}/zones/{ZONE}/instanceGroupManagers/a-group"


@pytest.fixture(autouse=True, scope="module")
def _threads_of_obstore() -> None:
    """They stay once they were needed, and would be taken for something that a host left."""
    obstore.put(MemoryStore(), "any", b"")


@pytest.fixture
def gcp(host: Host) -> Iterator[SimGCP]:
    with SimGCP(host) as gcp:
        yield gcp


def _script(gcp: SimGCP, *lines: str) -> str:
    return "\n".join([_PRELUDE, f"endpoint={gcp.endpoint}", *lines, ""])


def _running(gcp: SimGCP, count: int = 1) -> list[Instance]:
    """The instances that run, once there are this many."""

    def found() -> list[Instance]:
        return [each for each in gcp.instances() if each.state == "running"]

    until(lambda: len(found()) == count)
    return found()


def _machine(instance: Instance) -> RunningMachine:
    assert instance.machine is not None
    return instance.machine


def _content(googler: User, key: str) -> str:
    try:
        return bytes(obstore.get(googler.store(), key).bytes()).decode()
    except FileNotFoundError:
        return ""


def _account(googler: User) -> dict[str, Any]:
    """An account for machines: its bucket's objects, and its own group."""
    email = googler.make_account()
    member = f"serviceAccount:{email}"
    googler.call(
        "POST",
        "iam",
        f"v1/projects/{PROJECT}/roles",
        {
            "roleId": "machine",
            "role": {"includedPermissions": ["compute.instanceGroupManagers.update"]},
        },
    )
    role = f"projects/{PROJECT}/roles/machine"
    googler.bind(role, member, f"resource.name == '{_GROUP}'")
    googler.bind(
        "roles/storage.objectUser",
        member,
        "resource.name.startsWith('projects/_/buckets/a-bucket/')",
    )
    return {"serviceAccounts": [{"email": email, "scopes": [SCOPE]}]}


def test_a_whole_loop(gcp: SimGCP, googler: User) -> None:
    """Launch, write, be taken away, be replaced, append, leave the group; nothing is left."""
    script = _script(
        gcp,
        "store=$endpoint/storage.googleapis.com/a-bucket",
        'call "$store/log" > /tmp/log || true',
        "meta instance/id >> /tmp/log; echo >> /tmp/log",
        'call -T /tmp/log "$store/log"',
        "[ $(wc -l < /tmp/log) = 2 ] || exec sleep 1000",
        f"group=$endpoint/compute.googleapis.com/compute/v1/{_GROUP}",
        "body='{\"instances\": [\"zones/'$zone'/instances/'$name'\"]}'",
        'call "$group/deleteInstances" -H "Content-Type: application/json" --data "$body"',
        "sleep 1000",
    )
    googler.make_bucket()
    accounts = _account(googler)
    googler.make_template(script, spot=True, **accounts)
    googler.make_group()
    googler.resize(1)
    until(lambda: _content(googler, "log"))
    [first] = _running(gcp)
    assert _content(googler, "log").split() == [first.id]

    gcp.preempt(first.id, notice=False)
    until(lambda: len(_content(googler, "log").split()) == 2)
    second = gcp.instances()[-1]
    assert _content(googler, "log").split() == [first.id, second.id]
    assert (first.name, first.gone) == (second.name, True)
    until(lambda: second.gone)
    until(lambda: not googler.members())
    assert googler.group()["targetSize"] == 0
    machine = f"a-machine@{PROJECT}.iam.gserviceaccount.com"
    assert "compute:instanceGroupManagers.deleteInstances" in [
        call.name for call in gcp.calls if call.who == machine
    ]

    googler.remove_all()
    googler.unbind(machine)
    googler.remove_account(machine)
    googler.call("DELETE", "iam", f"v1/projects/{PROJECT}/roles/machine")
    googler.remove_bucket()
    assert gcp.inventory() == []


def test_what_the_metadata_server_says(gcp: SimGCP, googler: User) -> None:
    accounts = _account(googler)
    googler.make_template(
        "#!/bin/sh\necho started\n", spot=True, **accounts, labels={"of": "a-task"}
    )
    googler.make_group(1)
    [instance] = _running(gcp)
    machine = _machine(instance)

    def ask(path: str, *options: str, flavor: str = "Google") -> tuple[str, int]:
        header = ("-H", f"Metadata-Flavor: {flavor}") if flavor else ()
        url = f"{_ROOT}/{path}"
        asked = machine.run("curl", "-s", "-w", "\n%{http_code}", *header, *options, url)
        text, _, status = asked.stdout.rpartition("\n")
        return text, int(status)

    assert ask("instance/name", flavor="")[1] == 403
    assert ask("instance/name", flavor="Amazon")[1] == 403
    assert ask("instance/name", "-H", "X-Forwarded-For: 1.2.3.4")[1] == 403
    assert ask("instance/name") == (instance.name, 200)
    assert ask("instance/zone") == (f"projects/{NUMBER}/zones/{ZONE}", 200)
    assert ask("instance/id") == (instance.id, 200)
    assert ask("project/project-id") == (PROJECT, 200)
    assert ask("instance/preempted") == ("FALSE", 200)
    assert ask("instance/maintenance-event") == ("NONE", 200)
    assert ask("instance/attributes/nothing")[1] == 404
    assert ask("instance/attributes/startup-script")[0].startswith("#!/bin/sh")
    assert ask("instance/scheduling/preemptible") == ("TRUE", 200)
    assert ask("instance/service-accounts/default/scopes") == (SCOPE, 200)
    assert ask("instance/service-accounts/default/email")[0].startswith("a-machine@")
    assert ask("instance/attributes")[1] == 301
    assert ask("instance/attributes/")[0].split() == ["startup-script", "created-by"]
    everything = json.loads(ask("instance/?recursive=true")[0])
    assert everything["id"] == int(instance.id)
    assert everything["serviceAccounts"]["default"]["aliases"] == ["default"]
    assert "token" not in everything["serviceAccounts"]["default"]
    assert everything["attributes"]["created-by"].endswith("/instanceGroupManagers/a-group")
    assert ask("instance/name?alt=json") == (f'"{instance.name}"', 200)
    shown = machine.run("curl", "-si", "-H", "Metadata-Flavor: Google", f"{_ROOT}/instance/name")
    assert "Metadata-Flavor: Google" in shown.stdout
    token = json.loads(ask("instance/service-accounts/default/token")[0])
    assert token["token_type"] == "Bearer"
    assert 0 < token["expires_in"] <= 3600
    until(lambda: "startup-script exit status" in machine.console())
    port = googler.get(f"zones/{ZONE}/instances/{instance.name}/serialPort")
    assert "startup-script: started" in port["contents"]
    assert "startup-script exit status 0" in port["contents"]


def test_a_preempted_machine_is_told_and_has_some_time(gcp: SimGCP, googler: User) -> None:
    script = _script(
        gcp,
        # Without the last etag, it would miss a change from before it asked
        f"curl -sf -H 'Metadata-Flavor: Google' -D /run/head {_ROOT}/instance/preempted",
        "etag=$(sed -n 's/^ETag: \\([0-9a-f]*\\).*/\\1/p' /run/head)",
        'told=$(meta "instance/preempted?wait_for_change=true&last_etag=$etag")',
        'echo "told $told"',
        "exec sleep 1000",
    )
    googler.make_template(
        script,
        **_account(googler),
        scheduling={
            "provisioningModel": "SPOT",
            "automaticRestart": False,
            "preemptionNoticeDuration": {"seconds": "120"},
        },
    )
    googler.make_group(1)
    [instance] = _running(gcp)
    machine = _machine(instance)
    until(lambda: machine.run("pgrep", "-f", "wait_for_change", check=False).returncode == 0)
    gcp.preempt(instance.id, notice=True)
    until(lambda: "told TRUE" in machine.console())
    assert instance.status == "RUNNING"
    gcp.timing.notice = 20.0
    gcp.advance(120)
    until(lambda: instance.gone)
    assert machine.end is End.POWERED_OFF
    [again] = _running(gcp)
    assert (again.name, again.id != instance.id) == (instance.name, True)
    assert again.preempted is False


def test_a_machine_that_takes_too_long_is_killed(gcp: SimGCP, googler: User) -> None:
    script = "#!/bin/sh\ntrap '' TERM\necho here\nwhile :; do sleep 1; done\n"
    service = (
        "systemd-run --unit stubborn --property TimeoutStopSec=600 "
        "sh -c 'trap \"\" TERM; while :; do sleep 1; done'"
    )
    googler.make_template(f"#!/bin/sh\n{service}\n{script}", spot=True)
    googler.make_group(1)
    [instance] = _running(gcp)
    machine = _machine(instance)
    until(lambda: "startup-script: here" in machine.console())
    gcp.preempt(instance.id, notice=True)
    until(lambda: instance.gone)
    assert machine.end is End.KILLED


def test_the_startup_script_runs_at_every_boot(gcp: SimGCP, googler: User) -> None:
    script = "#!/bin/sh\necho boot >> /var/boots\n"
    googler.make_template(script)
    googler.make_group(1)
    [instance] = _running(gcp)

    def boots() -> int:
        with suppress(MachineError):  # it is between two boots
            shown = _machine(instance).run("cat", "/var/boots", check=False)
            return shown.stdout.count("boot")
        return 0

    until(lambda: boots() == 1)
    gcp.panic(instance.id)
    until(lambda: boots() == 2)
    first = _machine(instance)
    _machine(instance).run("systemctl", "reboot", check=False)
    until(lambda: instance.machine is not first and boots() == 3)
    assert instance.status == "RUNNING"
    googler.post(f"zones/{ZONE}/instances/{instance.name}/reset")
    until(lambda: boots() == 4)
    assert len(gcp.instances()) == 1


def test_a_machine_that_powers_off_is_replaced(gcp: SimGCP, googler: User) -> None:
    googler.make_template("#!/bin/sh\necho here\nexec sleep 1000\n")
    googler.make_group(1)
    [instance] = _running(gcp)
    until(lambda: "startup-script: here" in _machine(instance).console())
    _machine(instance).run("systemctl", "poweroff", check=False)
    until(lambda: instance.gone)
    [again] = _running(gcp)
    assert (again.name, again.id != instance.id) == (instance.name, True)
    googler.delete(f"zones/{ZONE}/instances/{again.name}")
    [third] = _running(gcp)
    assert third.name == instance.name


def test_the_shutdown_script_runs_in_an_ordered_shutdown(gcp: SimGCP, googler: User) -> None:
    gcp.timing.notice = 20.0
    items = [
        {"key": "startup-script", "value": "#!/bin/sh\necho here\nexec sleep 1000\n"},
        {"key": "shutdown-script", "value": "#!/bin/sh\necho last words > /dev/console\n"},
    ]
    googler.make_template(spot=True, metadata={"items": items})
    googler.make_group(1)
    [instance] = _running(gcp)
    machine = _machine(instance)
    until(lambda: "startup-script: here" in machine.console())
    gcp.preempt(instance.id, notice=True)
    until(lambda: instance.gone)
    assert machine.end is End.POWERED_OFF
    assert "last words" in machine.console()


def test_object_store_logs_in_by_itself_in_a_machine(gcp: SimGCP, googler: User) -> None:
    googler.make_bucket()
    googler.make_template("#!/bin/sh\nexec sleep 1000\n", **_account(googler))
    googler.make_group(1)
    [instance] = _running(gcp)
    machine = _machine(instance)
    tag = machine.run("python3", "-c", "import sys; print(*sys.version_info[:2], sep='')").stdout
    needed = [each for each in locked(tag.strip(), platform.machine()) if each.name == "obstore"]
    found = [path for each in needed for path in _WHEELS.glob(f"{each.sha256}/*.whl")]
    if not found:
        pytest.skip("no wheel of obstore for the Python of machines: run `make test` once")
    unpack = (
        "base64 -d > /tmp/wheel && mkdir /opt/x && cd /opt/x && python3 -m zipfile -e /tmp/wheel ."
    )
    machine.run("sh", "-c", unpack, input=base64.b64encode(found[0].read_bytes()).decode())
    program = f"""\
import sys

sys.path.insert(0, "/opt/x")
import obstore

store = obstore.store.GCSStore(
    "a-bucket",
    config={{"base_url": "{gcp.endpoint}/storage.googleapis.com"}},
    client_options={{"allow_http": True}},
)
obstore.put(store, "from", b"a machine")
"""
    machine.run("python3", "-", input=program)
    assert _content(googler, "from") == "a machine"
