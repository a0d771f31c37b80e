"""What a task itself shows to be wrong is found without an SDK, credentials or a request."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from sojourn import api
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a form needs no request")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def _check(cloud: str, fields: dict[str, Any]) -> None:
    api.check_form(Task("#!/bin/sh\n", cloud=cloud, **fields))


def _network(name: str) -> dict[str, Any]:
    return {"options": {"network": name}}


@pytest.mark.parametrize(
    ("cloud", "fields", "told"),
    [
        (
            "az",
            {"machine": "m+k80"},
            r"machine: Standard_NC6 is not available in westus2; Azure has retired K80s: use m\+t4",
        ),
        ("az", {"machine": "l+k80", "region": "us-east"}, "Standard_NC12 is not available in east"),
        ("az", {"machine": "Standard_NC6"}, "Azure has retired K80s"),
        ("az", {"machine": "Standard_NC24rs_v3"}, "Azure has retired V100s"),
        ("az", {"machine": "Standard_ND40rs_v2"}, "Azure has retired V100s"),
        ("az", {"machine": "Standard_NV6"}, "Azure has retired M60s"),
        ("az", {"spot": 0.123456}, "spot: must have at most 5 decimals on Azure, got 0.123456"),
        ("az", {"spot": 0.000001}, "spot: must be 0 or at least 0.00001, got 1e-06"),
        ("az", _network("x y"), "options.network: must be the ID of a subnet"),
        (
            "aws",
            {"machine": "m+k80"},
            r"machine: p2.xlarge has K80s, which AWS is retiring: use m\+t4",
        ),
        ("aws", {"machine": "p2.16xlarge"}, "p2.16xlarge has K80s"),
        (
            "aws",
            {"region": "us-gov-west-1"},
            "region: us-gov-west-1 is in the partition aws-us-gov, which is not supported",
        ),
        ("aws", {"region": "cn-north-1"}, "is in the partition aws-cn"),
        ("aws", _network("x y"), "options.network: must be a VPC .*, got 'x y'"),
        ("gcp", {"machine": "m+k80"}, "Google Cloud withdrew K80s"),
        ("gcp", _network("x y"), "options.network: must be a network, or .*, got 'x y'"),
        ("gcp", _network("a,b"), "options.network: must be a network"),
        (
            "k8s",
            {"image": "A B"},
            "image: must be the name of a container image, such as python:3.12, got 'A B'",
        ),
        ("k8s", {"image": ""}, "image: must be the name of a container image"),
        (
            "k8s",
            {"permission_set": "A b"},
            "permission_set: must be the name of a service account, .*, got 'A b'",
        ),
        ("k8s", {"options": {"agent_image": "A B"}}, "options.agent_image: must be the name of"),
        ("k8s", {"options": {"storage_class": "A b"}}, "options.storage_class: must be the name"),
        ("k8s", {"options": {"queue": "Night!"}}, "options.queue: must be the name of a queue"),
        ("k8s", {"options": {"queue": ""}}, "options.queue: must be the name of a queue"),
    ],
)
def test_what_needs_no_request_is_refused_without_one(
    cloud: str, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        _check(cloud, fields)


@pytest.mark.parametrize(
    ("cloud", "fields"),
    [
        *[(cloud, {"machine": f"{size}+v100"}) for cloud in ("aws", "az") for size in "ml"],
        ("aws", {"machine": "p3.2xlarge"}),
        *[("az", {"spot": price}) for price in (-1, 0, 0.25, 0.12345, 0.00001, 3)],
        ("aws", {"spot": 0.123456}),
        ("aws", _network("subnet-1a,subnet-2b")),
        ("aws", _network("vpc-1a, private")),
        ("gcp", _network("default")),
        ("gcp", _network("mine/subnet, private")),
        ("k8s", {"machine": "m+k80"}),
        ("k8s", {"image": "registry.example.com:5000/team/tool:1.2_b"}),
        ("k8s", {"image": f"python@sha256:{'0' * 64}"}),
        ("k8s", {"image": f"python:3.12@sha512:{'0' * 128}"}),
        ("k8s", {"permission_set": "robot.ci-1"}),
        ("k8s", {"options": {"storage_class": "", "agent_image": ""}}),
    ],
)
def test_what_only_the_cloud_can_tell_passes(cloud: str, fields: dict[str, Any]) -> None:
    _check(cloud, fields)
