"""Logging in to machines, with the real `ssh`: as a user does on real clouds."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.simcloud.laptop import Laptop
from tests.simcloud.machines import ssh
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.road import Road, write_config
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, Login, MachineSpec
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

_ADDRESS = "203.0.113.7"
_THERE = f"ubuntu@{_ADDRESS}"


@pytest.fixture(autouse=True)
def _server() -> None:
    reason = Host.ssh_unavailable()
    if reason:
        pytest.skip(reason)


class _Place:
    """A host, a laptop, and the road between; what is booted last has the address."""

    def __init__(self, host: Host, home: Path) -> None:
        self.host = host
        self.home = home
        self.machine: RunningMachine | None = None
        self.closed: set[tuple[str, int]] = set()  # what a firewall keeps out
        self.road = Road(self._find, lambda address, port: (address, port) not in self.closed)
        self.laptop = Laptop(home, write_config(home, self.road))

    def boot(self, script: str = "") -> RunningMachine:
        data = f"#!/bin/sh\n{script}\n".encode()
        logins = (Login("ubuntu", (self.laptop.public,)),)
        return self.use(self.host.boot(MachineSpec("i-1", data, logins=logins)))

    def use(self, machine: RunningMachine) -> RunningMachine:
        self.machine = machine
        self.host_key = self.laptop.trust(_ADDRESS, machine)
        return machine

    def _find(self, address: str) -> RunningMachine | None:
        there = self.machine and self.machine.alive and address == _ADDRESS
        return self.machine if there else None


@pytest.fixture
def place(host: Host, tmp_path: Path) -> Iterator[_Place]:
    place = _Place(host, tmp_path)
    yield place
    place.road.close()


def _leave(session: subprocess.Popen[bytes]) -> int:
    """How the session ended, once it has."""
    with session:
        return session.wait(patience(30))


# Who may log in


def test_the_right_key_opens_a_shell_and_sudo(place: _Place) -> None:
    place.boot()
    done = place.laptop.ssh(_THERE, "id -un; pwd; sudo -n id -u; echo aside >&2; exit 7")
    assert done.stdout == b"ubuntu\n/home/ubuntu\n0\n"
    assert done.stderr == b"aside\n"
    assert done.returncode == 7


def test_other_keys_and_other_users_are_refused(place: _Place) -> None:
    place.boot()
    for user, key in (("ubuntu", place.laptop.other_key), ("root", None), ("nobody", None)):
        done = place.laptop.ssh(f"{user}@{_ADDRESS}", "true", key=key)
        assert done.returncode == 255
        assert b"Permission denied (publickey)" in done.stderr, user
    assert place.laptop.ssh(_THERE, "true").returncode == 0


def test_only_users_with_a_login_become_root(place: _Place) -> None:
    machine = place.boot()
    as_nobody = ("setpriv", "--reuid=nobody", "--clear-groups", "sudo", "-n", "true")
    assert machine.run(*as_nobody, check=False).returncode != 0


def test_each_machine_has_a_key_of_its_own_which_stays(place: _Place) -> None:
    first = place.boot()
    key = place.host_key
    first.kill()
    place.use(place.host.restart(first))
    assert place.host_key == key
    assert place.laptop.ssh(_THERE, "true").returncode == 0
    known = place.laptop.known.read_text()
    place.use(place.host.boot(first.spec))
    assert place.host_key != key
    place.laptop.known.write_text(known)  # it takes this machine for the first one
    done = place.laptop.ssh(_THERE, "true")
    assert done.returncode == 255
    assert b"Host key verification failed" in done.stderr


def test_host_key_and_users_are_there_when_user_data_runs(place: _Place) -> None:
    lines = (f"cut -d' ' -f2 {ssh.HOST_KEY}.pub", "cat ~ubuntu/.ssh/authorized_keys", "echo end")
    machine = place.boot("; ".join(lines))
    until(lambda: "end\n" in machine.console())
    assert f"{place.host_key}\n{place.laptop.public}\nend\n" in machine.console()


# What a connection carries


def test_megabytes_go_there_and_back(place: _Place) -> None:
    place.boot()
    data = random.Random(1).randbytes(8 << 20)
    done = place.laptop.ssh(_THERE, "sudo -n sh -c 'cat'", input=data)
    assert done.returncode == 0
    assert done.stdout == data


def test_a_port_of_the_machine_is_forwarded(place: _Place) -> None:
    machine = place.boot("cd /srv && echo found > file && python3 -m http.server -b 127.0.0.1 8000")
    answers = ("curl", "-sf", "http://127.0.0.1:8000/")
    until(lambda: machine.run(*answers, check=False).returncode == 0)
    request = b"GET /file HTTP/1.0\r\n\r\n"
    done = place.laptop.ssh("-W", "127.0.0.1:8000", _THERE, input=request)
    assert done.stdout.endswith(b"\r\n\r\nfound\n")
    assert place.laptop.ssh("-W", "127.0.0.1:8001", _THERE).returncode != 0


def test_a_session_can_have_a_terminal(place: _Place) -> None:
    place.boot()
    done = place.laptop.ssh("-tt", _THERE, "tty; sudo -n tty")
    assert done.stdout.startswith(b"/dev/pts/")
    assert len(done.stdout.splitlines()) == 2
    assert b"not a tty" in place.laptop.ssh(_THERE, "tty").stdout


def test_what_a_session_leaves_in_the_background_goes_on(place: _Place) -> None:
    machine = place.boot()
    done = place.laptop.ssh(_THERE, "nohup sleep 1000 >/dev/null 2>&1 & echo left")
    assert done.stdout == b"left\n"
    until(lambda: not any("sshd: ubuntu" in " ".join(each.argv) for each in machine.processes()))
    until(lambda: ("sleep", "1000") in [each.argv for each in machine.processes()])


# How connections end, and where there is none


def test_a_connection_ends_when_the_machine_is_killed(place: _Place) -> None:
    machine = place.boot()
    session = place.laptop.open(_THERE, "echo there; sleep 1000")
    machine.kill()
    assert _leave(session) == 255


def test_a_shutdown_in_order_ends_sessions_and_waits_for_none(place: _Place) -> None:
    machine = place.boot()
    session = place.laptop.open(_THERE, "echo there; sleep 1000")
    machine.power_button()
    assert _leave(session) == 255
    assert machine.wait(patience(30))
    assert machine.end is End.POWERED_OFF


def test_where_no_machine_is_connections_are_refused(place: _Place) -> None:
    machine = place.boot()
    elsewhere = place.laptop.ssh("ubuntu@203.0.113.8", "true")
    other_port = place.laptop.ssh("-p", "23", _THERE, "true")
    machine.kill()
    for done in (elsewhere, other_port, place.laptop.ssh(_THERE, "true")):
        assert done.returncode == 255
        assert b"Connection refused" in done.stderr


def test_a_machine_that_is_just_ending_refuses(place: _Place) -> None:
    machine = place.boot()
    machine.kill()
    with pytest.raises(ConnectionRefusedError):
        machine.connect(ssh.PORT)


def test_a_firewall_keeps_out_what_it_is_told_to(place: _Place) -> None:
    place.boot()
    place.closed.add((_ADDRESS, 22))
    done = place.laptop.ssh(_THERE, "true")
    assert done.returncode == 255
    assert b"Connection timed out" in done.stderr
    place.closed.clear()
    assert place.laptop.ssh(_THERE, "true").returncode == 0


def test_the_road_is_gone_when_it_is_closed(place: _Place) -> None:
    place.boot()
    with Road(lambda _: place.machine) as road:
        write_config(place.home, road)  # in place of the other one
        session = place.laptop.open(_THERE, "echo there; cat")
    assert b"Connection refused" in place.laptop.ssh(_THERE, "true").stderr
    said, _ = session.communicate(b"still here", timeout=patience(30))  # who is there may stay
    assert said == b"still here"


# The server


def test_a_server_that_takes_no_socket_from_systemd_does_as_well(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of Ubuntu 22.04."""
    monkeypatch.setattr(ssh, "_LISTENS", ())
    with Host() as other:
        place = _Place(other, tmp_path)
        with place.road:
            machine = place.boot()
            until(lambda: _active(machine, "ssh.service"))
            assert not _active(machine, "ssh.socket")
            assert place.laptop.ssh(_THERE, "sudo -n id -u").stdout == b"0\n"
            machine.power_button()
            assert machine.wait(patience(30))


def _active(machine: RunningMachine, unit: str) -> bool:
    return machine.run("systemctl", "is-active", "--quiet", unit, check=False).returncode == 0


def test_logging_in_is_logged_and_not_printed_on_the_console(place: _Place) -> None:
    machine = place.boot("echo up")
    until(lambda: "up\n" in machine.console())
    assert place.laptop.ssh(_THERE, "sudo -n true").returncode == 0
    assert "sshd" not in machine.console().partition("up\n")[2]
    log = machine.run("cat", "/var/log/auth.log").stdout
    assert "Accepted publickey for ubuntu" in log
    assert "COMMAND=/usr/bin/true" in log


def test_machines_boot_without_a_server_where_there_is_none(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "_USR", tmp_path)
    monkeypatch.setattr(ssh, "_FETCHED", tmp_path / "nowhere")
    assert "apt install openssh-client" in (Host.ssh_unavailable() or "")
    with Host() as other:
        spec = MachineSpec("i-1", b"#!/bin/sh\necho up\n", logins=(Login("ubuntu", ()),))
        machine = other.boot(spec)
        until(lambda: "up\n" in machine.console())
        with pytest.raises(ConnectionRefusedError):
            machine.connect(ssh.PORT)
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "openssh-client" in (ssh.unavailable() or "")


# On each cloud

_Launch = Callable[[ExitStack, Host, str], tuple[Any, str]]


def _on_aws(opened: ExitStack, host: Host, public: str) -> tuple[Any, str]:
    from tests.simcloud.aws.account import SimAWS
    from tests.simcloud.aws_user import User

    account = opened.enter_context(SimAWS(host))
    user = User(account.environment())
    opened.callback(user.close)
    user.ec2.import_key_pair(KeyName="a-key", PublicKeyMaterial=public.encode())
    group = user.ec2.create_security_group(GroupName="door", Description="open")["GroupId"]
    anywhere = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    user.ec2.authorize_security_group_ingress(
        GroupId=group, IpPermissions=[{**anywhere, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    )
    user.make_template(KeyName="a-key", SecurityGroupIds=[group])
    user.make_group(1)
    return account, "ubuntu"


def _on_gcp(opened: ExitStack, host: Host, public: str) -> tuple[Any, str]:
    from tests.simcloud.gcp.account import SimGCP
    from tests.simcloud.gcp_user import User

    account = opened.enter_context(SimGCP(host))
    user = User(account.environment())
    opened.callback(user.close)
    keys = f"nobody-else:{public.replace('A', 'B')}\nsomeone:{public}"
    metadata = {"items": [{"key": "ssh-keys", "value": keys}]}
    user.make_template(metadata=metadata)
    user.make_group(1)
    return account, "someone"


def _on_azure(opened: ExitStack, host: Host, public: str) -> tuple[Any, str]:
    from tests.simcloud.az.account import SimAzure
    from tests.simcloud.az_user import User

    account = opened.enter_context(SimAzure(host))
    user = User(account.environment())
    opened.callback(user.close)
    user.make_set(user.make_group(), key=public)
    return account, "someone"


@pytest.mark.parametrize("launch", [_on_aws, _on_gcp, _on_azure])
def test_instances_let_in_whom_the_cloud_was_told_to(
    launch: _Launch, host: Host, tmp_path: Path
) -> None:
    from tests.contract.clouds.vm_kit import VmKit

    (home := tmp_path / "home").mkdir()
    laptop = Laptop(tmp_path, home / ".ssh" / "config")
    with ExitStack() as opened:
        account, user = launch(opened, host, laptop.public)
        kit = VmKit(home, account, opened)
        opened.callback(kit._patched.undo)
        assert (home / ".ssh" / "config").stat().st_mode & 0o777 == 0o600
        until(lambda: [each for each in account.instances() if each.state == "running"])
        [instance] = account.instances()
        assert instance.public_address
        laptop.trust(instance.public_address, instance.machine)
        there = f"{user}@{instance.public_address}"
        done = laptop.ssh(there, "id -un; sudo -n id -u; hostname")
        assert done.stdout.decode().split() == [user, "0", instance.machine.spec.hostname]
        assert laptop.ssh(there, "true", key=laptop.other_key).returncode == 255
        session = laptop.open(there, "echo there; sleep 1000")
        instance.machine.kill()
        assert _leave(session) == 255
