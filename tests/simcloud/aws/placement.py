"""Placement groups of EC2, which moto does not know, and what may be launched in one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from tests.simcloud.aws import backends, codec
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.market import LaunchRefusedError
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.wire import Answer, Request

OPERATIONS = ("CreatePlacementGroup", "DeletePlacementGroup")
_UNKNOWN = "The Placement Group '{}' is unknown."


def groups_of(backend: Any) -> dict[str, dict[str, Any]]:
    """Those of a region, by their names; they go with what moto has of it."""
    found: dict[str, dict[str, Any]] = backend.__dict__.setdefault("placement_groups", {})
    return found


def answer(call: Call, request: Request) -> Answer:
    """One of the operations above."""
    backend = backends.ec2(call.region)
    given = codec.parameters("ec2", call.operation, request)
    act = _create if call.operation == "CreatePlacementGroup" else _delete
    return codec.result("ec2", call.operation, act(backend, given))


def _create(backend: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    name, groups = given["GroupName"], groups_of(backend)
    if given.get("Strategy") != "cluster":
        raise NotImplementedError("only placement groups with the strategy cluster are known here")
    if name in groups:
        text = f"The placement group '{name}' already exists."
        raise AWSError("InvalidPlacementGroup.Duplicate", text)
    tags = [tag for each in given.get("TagSpecifications", ()) for tag in each["Tags"]]
    groups[name] = {
        "GroupName": name,
        "GroupId": f"pg-{uuid.uuid4().hex[:17]}",
        "State": "available",
        "Strategy": "cluster",
        "Tags": tags,
    }
    return {"PlacementGroup": groups[name]}


def _delete(backend: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    name, groups = given["GroupName"], groups_of(backend)
    if name not in groups:
        raise AWSError("InvalidPlacementGroup.Unknown", _UNKNOWN.format(name))
    if _inside(backend, name):
        text = f"The placement group '{name}' is in use and may not be deleted."
        raise AWSError("InvalidPlacementGroup.InUse", text)
    del groups[name]
    return {}


def _inside(backend: Any, name: str) -> list[Any]:
    return [
        each
        for each in backend.all_instances()
        if each.state != "terminated" and getattr(each, "placed_in", "") == name
    ]


def name_in(data: Mapping[str, Any]) -> str:
    """The group that a template names; empty: none."""
    return str(data.get("Placement", {}).get("GroupName", ""))


def check(backend: Any, data: Mapping[str, Any], zone: str = "") -> None:
    """Refuse to launch what cannot be in the group that the template names."""
    name, kind = name_in(data), data["InstanceType"]
    if not name:
        return
    if name not in groups_of(backend):
        raise LaunchRefusedError(_UNKNOWN.format(name))
    known = INSTANCE_TYPES[kind].get("PlacementGroupInfo", {}).get("SupportedStrategies", ())
    if "cluster" not in known:
        raise LaunchRefusedError(
            f"Cluster placement groups are not supported by the '{kind}' instance type. Specify a "
            f"supported instance type or change the placement group strategy, and try again."
        )
    elsewhere = {each.placement.zone for each in _inside(backend, name)} - {zone}
    if zone and elsewhere:
        raise LaunchRefusedError(
            f"Instances in the Placement Group '{name}' must be launched in the same Availability "
            f"Zone: {elsewhere.pop()}"
        )
