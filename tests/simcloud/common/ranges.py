"""Networks and ports as firewalls of all clouds write them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def covers(networks: Iterable[str], address: str) -> bool:
    """Whether an address is in one of these networks."""
    given = ipaddress.ip_address(address)
    return any(given in ipaddress.ip_network(each) for each in networks)


def has_port(ranges: Iterable[str], port: int) -> bool:
    """Whether a port is one of these, of which each may be a range."""
    for each in ranges:
        first, _, last = each.partition("-")
        if int(first) <= port <= int(last or first):
            return True
    return False
