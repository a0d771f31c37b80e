"""Which proxy leads to a server, by the variables of an environment; read as kubectl does.

One decision for all connections to a server: libraries differ in what NO_PROXY may hold, and
whether this computer is spared.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["proxy_for"]


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The URL of the proxy; empty if there is none, or none for this server."""
    parts = urlsplit(server)
    proxy = _variable(environment, f"{parts.scheme}_proxy")
    host = (parts.hostname or "").rstrip(".")
    if not proxy or not host or _is_local(host):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    spared = [item.strip().lower() for item in _variable(environment, "no_proxy").split(",")]
    if any(_matches(item, host, port) for item in spared if item):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name.lower()) or ""


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _matches(item: str, host: str, port: int) -> bool:
    """Whether an item of NO_PROXY means this server: *, an address, a network or a domain."""
    if item == "*":
        return True
    address = _address(host)
    if "/" in item:
        try:
            return address is not None and address in ipaddress.ip_network(item, strict=False)
        except ValueError:
            return False
    name, wanted = _split(item)
    if wanted and wanted != str(port):
        return False
    if address is not None:
        return _address(name) == address
    if name.startswith("*."):
        name = name[1:]
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _split(item: str) -> tuple[str, str]:
    """A host and its port, if it has one; addresses of IPv6 have colons of their own."""
    if item.startswith("["):
        host, _, port = item[1:].partition("]")
        return host, port.removeprefix(":")
    if item.count(":") == 1:
        host, _, port = item.partition(":")
        return host, port
    return item, ""
