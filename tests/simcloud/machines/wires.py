"""What connects machines with each other: a switch that hands packets from one to the next.

Each machine has a card, whose other end is held here. Who may talk to whom, the caller says; a
packet that may not pass is answered as if nobody were there, so that nobody waits for a timeout.
What crosses the border of a network, and anything but TCP and UDP of IPv4, goes nowhere.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import select
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

CARD = "eth0"
LARGEST = 60000  # bytes of a packet
_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_HEADER = struct.Struct("!BBHHHBBH4s4s")
_PORTS = struct.Struct("!HH")
_WITH_PORTS = (6, 17)  # TCP and UDP
_ICMP = 1
_UNREACHABLE = (3, 13)  # by a firewall


class Packet(NamedTuple):
    """A first packet from one machine to another."""

    network: str
    source: str
    target: str
    protocol: str  # "tcp" or "udp"
    port: int


Admits = Callable[[Packet], bool]


@dataclass(frozen=True)
class Cable:
    """To the switch, in one of its networks, with an address there."""

    switch: Switch
    network: str
    address: str


@dataclass(frozen=True)
class _Head:
    """What a packet says of itself; without ports it is none of ours."""

    source: str
    target: str
    protocol: int
    ports: tuple[int, int]

    @property
    def there(self) -> tuple[str, int, str, int, int]:
        return (self.source, self.ports[0], self.target, self.ports[1], self.protocol)

    @property
    def back(self) -> tuple[str, int, str, int, int]:
        return (self.target, self.ports[1], self.source, self.ports[0], self.protocol)


def make_card() -> int:
    """A card in the network namespace of this process; its other end is what is returned."""
    fd = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", CARD.encode(), _IFF_TUN | _IFF_NO_PI))
    return fd


class Switch:
    """Connects machines; a context manager."""

    def __init__(self, admits: Admits) -> None:
        self._admits = admits
        self._lock = threading.Lock()
        self._cards: dict[int, tuple[str, str]] = {}
        self._flows: set[tuple[str, tuple[str, int, str, int, int]]] = set()
        self._poll = select.epoll()
        self._end, self._ended = os.pipe()
        self._poll.register(self._end, select.EPOLLIN)
        self._keeper: threading.Thread | None = None
        self._closed = False

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plug(self, fd: int, cable: Cable) -> None:
        """Connect the other end of a card; it is ours from now on."""
        with self._lock:
            if self._closed:
                os.close(fd)
                return
            self._cards[fd] = (cable.network, cable.address)
            self._poll.register(fd, select.EPOLLIN)
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="switch", daemon=True)
                self._keeper.start()

    def unplug(self, fd: int) -> None:
        with self._lock:
            if fd in self._cards:
                self._remove(fd)

    def _remove(self, fd: int) -> None:
        network, address = self._cards.pop(fd)
        self._poll.unregister(fd)
        os.close(fd)
        self._flows -= {each for each in self._flows if each[0] == network and address in each[1]}

    def close(self) -> None:
        """Nothing passes any more, and nobody else is connected."""
        with self._lock:
            self._closed = True
        os.write(self._ended, b".")
        if self._keeper:
            self._keeper.join()
        with self._lock:
            for fd in list(self._cards):
                self._remove(fd)
        self._poll.close()
        os.close(self._end)
        os.close(self._ended)

    def _keep(self) -> None:
        while True:
            ready = [fd for fd, _ in self._poll.poll()]
            if self._end in ready:
                return
            for fd in ready:
                for network, data in self._read(fd):
                    self._pass(network, data)

    def _read(self, fd: int) -> list[tuple[str, bytes]]:
        found = []
        with self._lock, suppress(OSError):  # there is no more, or the machine has gone
            if fd in self._cards:
                network, _ = self._cards[fd]
                while data := os.read(fd, LARGEST):
                    found.append((network, data))
        return found

    def _pass(self, network: str, data: bytes) -> None:
        head = _head(data)
        if head is None:
            return
        if self._may_pass(network, head):
            self._write(network, head.target, data)
        else:
            self._write(network, head.source, _refusal(head, data))

    def _may_pass(self, network: str, head: _Head) -> bool:
        """What was let in is answered, and goes on, whatever becomes of the rules."""
        with self._lock:
            if not self._flows.isdisjoint({(network, head.there), (network, head.back)}):
                return True
            known = (network, head.target) in self._cards.values()
        protocol = "tcp" if head.protocol == _WITH_PORTS[0] else "udp"
        packet = Packet(network, head.source, head.target, protocol, head.ports[1])
        if not known or not self._admits(packet):
            return False
        with self._lock:
            self._flows.add((network, head.there))
        return True

    def _write(self, network: str, address: str, data: bytes) -> None:
        with self._lock, suppress(OSError):  # it has gone, or takes no more: who sent it, repeats
            for fd, place in self._cards.items():
                if place == (network, address):
                    os.write(fd, data)
                    return


def _head(data: bytes) -> _Head | None:
    if len(data) < _HEADER.size or data[0] >> 4 != 4:
        return None
    _, _, _, _, fragment, _, protocol, _, source, target = _HEADER.unpack_from(data)
    start = (data[0] & 15) * 4
    if protocol not in _WITH_PORTS or fragment & 0x1FFF or len(data) < start + _PORTS.size:
        return None
    source, target = (str(ipaddress.IPv4Address(each)) for each in (source, target))
    return _Head(source, target, protocol, _PORTS.unpack_from(data, start))


def _refusal(head: _Head, data: bytes) -> bytes:
    """What a router answers to a packet that a firewall keeps out."""
    told = data[: (data[0] & 15) * 4 + 8]
    message = struct.pack("!BBHI", *_UNREACHABLE, 0, 0) + told
    message = message[:2] + struct.pack("!H", _checksum(message)) + message[4:]
    ends = [ipaddress.IPv4Address(each).packed for each in (head.target, head.source)]
    header = _HEADER.pack(0x45, 0, 20 + len(message), 0, 0, 64, _ICMP, 0, *ends)
    return header[:10] + struct.pack("!H", _checksum(header)) + header[12:] + message


def _checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
