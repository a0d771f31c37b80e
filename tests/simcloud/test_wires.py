"""The network between machines: who is in the same one gets through, if the firewall lets them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import MachineSpec
from tests.simcloud.machines.traces import threads_since
from tests.simcloud.machines.wires import Cable, Packet, Switch
from tests.support.waiting import patience, until

_LISTEN = """
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
print("listening", flush=True)
while True:
    client, (source, _) = server.accept()
    data = b""
    while len(data) < 1000000:
        data += client.recv(1 << 20)
    client.sendall(f"{source} {len(data)}".encode())
    client.close()
"""
_SEND = """
import json, socket, sys
try:
    with socket.create_connection((sys.argv[1], 7000), timeout=60) as client:
        client.sendall(b"x" * 1000000)
        print(json.dumps(client.recv(100).decode()))
except OSError as error:
    print(json.dumps(type(error).__name__ + str(error.errno)))
"""
_PROBE = """
import socket
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.connect(("192.0.2.1", 9))
print(probe.getsockname()[0])
"""


@pytest.fixture
def asked() -> list[Packet]:
    return []


@pytest.fixture
def switch(host: Host, asked: list[Packet]) -> Iterator[Switch]:
    """Lets those in whose addresses end with an odd number."""

    def admits(packet: Packet) -> bool:
        asked.append(packet)
        return int(packet.source[-1]) % 2 == 1

    before = threading.enumerate()
    with Switch(admits) as made:
        yield made
        host.close()
    assert not threads_since(before)


def _boot(host: Host, switch: Switch, network: str, address: str, listen: bool) -> RunningMachine:
    script = f"#!/bin/sh\npython3 -c '{_LISTEN}' {address}\n" if listen else ""
    name, cable = f"i-{network}-{address[-1]}", Cable(switch, network, address)
    machine = host.boot(MachineSpec(name, script.encode(), cable=cable, every_boot=True))
    if listen:
        until(lambda: "listening" in machine.console(), 20)
    return machine


def _send(machine: RunningMachine, address: str) -> str:
    said: str = json.loads(machine.run("python3", "-c", _SEND, address).stdout)
    return said


def test_machines_reach_each_other_as_the_firewall_says(
    host: Host, switch: Switch, asked: list[Packet]
) -> None:
    _boot(host, switch, "a", "10.0.0.2", listen=True)
    one = _boot(host, switch, "a", "10.0.0.3", listen=False)
    two = _boot(host, switch, "a", "10.0.0.4", listen=False)
    elsewhere = _boot(host, switch, "b", "10.0.0.3", listen=False)
    assert one.run("python3", "-c", _PROBE).stdout == "10.0.0.3\n"
    assert _send(one, "10.0.0.2") == "10.0.0.3 1000000"
    assert asked[-1] == Packet("a", "10.0.0.3", "10.0.0.2", "tcp", 7000)
    began = time.monotonic()
    for machine, address in ((two, "10.0.0.2"), (elsewhere, "10.0.0.2"), (one, "1.1.1.1")):
        assert _send(machine, address) == "OSError113"  # no route to the host, and at once
    assert time.monotonic() - began < patience(5)


def test_a_machine_that_is_started_again_is_connected_again(host: Host, switch: Switch) -> None:
    first = _boot(host, switch, "a", "10.0.0.2", listen=True)
    one = _boot(host, switch, "a", "10.0.0.3", listen=False)
    first.kill()
    assert _send(one, "10.0.0.2") == "OSError113"
    host.restart(first)
    until(lambda: _send(one, "10.0.0.2") == "10.0.0.3 1000000", 20)
