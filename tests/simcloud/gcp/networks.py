"""Networks, subnets and firewalls that a fresh project has, and defaults of firewall rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simcloud.gcp import catalogue
from tests.simcloud.gcp.project import PROJECT, new_id
from tests.simcloud.gcp.store import Store, link, overall, regional

_SINCE = "2026-01-01T00:00:00.000-08:00"
_RULES = {
    "default-allow-icmp": ([{"IPProtocol": "icmp"}], ["0.0.0.0/0"]),
    "default-allow-internal": (
        [{"IPProtocol": "tcp", "ports": ["0-65535"]}, {"IPProtocol": "udp", "ports": ["0-65535"]}],
        ["10.128.0.0/9"],
    ),
    "default-allow-rdp": ([{"IPProtocol": "tcp", "ports": ["3389"]}], ["0.0.0.0/0"]),
    "default-allow-ssh": ([{"IPProtocol": "tcp", "ports": ["22"]}], ["0.0.0.0/0"]),
}


def furnish(store: Store) -> None:
    """What is there from the start."""
    everywhere = dict.fromkeys(catalogue.regions(), "default")
    network = add_network(store, "default", everywhere, automatic=True)
    for name, (allowed, ranges) in _RULES.items():
        path = overall("firewalls", name)
        rule = {"name": name, "allowed": allowed, "sourceRanges": ranges, "priority": 65534}
        store.add(path, {**_head("firewall", path), **with_defaults(rule, network)})


def add_network(store: Store, name: str, subnets: Mapping[str, str], automatic: bool) -> str:
    """A network with subnets, whose names are by region; returns its URL."""
    path = overall("networks", name)
    links = []
    for index, (region, own) in enumerate(subnets.items()):
        subnet = regional(region, "subnetworks", own)
        links.append(link(subnet))
        store.add(
            subnet,
            {
                **_head("subnetwork", subnet),
                "name": own,
                "network": link(path),
                "ipCidrRange": f"10.{128 + index}.0.0/20",
                "gatewayAddress": f"10.{128 + index}.0.1",
                "region": link(f"projects/{PROJECT}/regions/{region}"),
                "privateIpGoogleAccess": False,
                "purpose": "PRIVATE",
                "stackType": "IPV4_ONLY",
            },
        )
    store.add(
        path,
        {
            **_head("network", path),
            "name": name,
            "autoCreateSubnetworks": automatic,
            "routingConfig": {"routingMode": "REGIONAL"},
            "subnetworks": links,
        },
    )
    return link(path)


def with_defaults(rule: dict[str, Any], network: str) -> dict[str, Any]:
    """A firewall rule as it is told."""
    inwards = rule.get("direction", "INGRESS") == "INGRESS"
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    shown = {
        "direction": "INGRESS",
        "priority": 1000,
        "disabled": False,
        "logConfig": {"enable": False},
        **rule,
        "network": network,
    }
    if inwards and not any(rule.get(name) for name in sources):
        shown["sourceRanges"] = ["0.0.0.0/0"]
    return shown


def _head(kind: str, path: str) -> dict[str, Any]:
    return {
        "kind": f"compute#{kind}",
        "id": new_id(),
        "creationTimestamp": _SINCE,
        "selfLink": link(path),
    }
