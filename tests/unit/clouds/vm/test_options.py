"""Options that all clouds with machines that boot have."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.vm.options import (
    ANYWHERE,
    Network,
    check_options,
    machine_image,
    network_of,
    ssh_from,
)
from sojourn.clouds.vm.tags import DEFAULTS, user_tags
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task


def _task(**options: str) -> Task:
    return Task("#!/bin/sh\n", cloud="aws", options=options)


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        ({}, ANYWHERE),
        ({"ssh_from": ""}, ANYWHERE),
        ({"ssh_from": "none"}, ()),
        ({"ssh_from": "203.0.113.7"}, ("203.0.113.7/32",)),
        ({"ssh_from": "10.0.0.0/8, 2001:db8::/32"}, ("10.0.0.0/8", "2001:db8::/32")),
        ({"ssh_from": "10.0.0.0/8,10.0.0.0/8"}, ("10.0.0.0/8",)),
    ],
)
def test_who_may_connect_by_ssh(given: dict[str, str], networks: tuple[str, ...]) -> None:
    assert ssh_from(_task(**given)) == networks


@pytest.mark.parametrize("given", ["anywhere", "10.0.0.1/8", "10.0.0.0/8,", "none,10.0.0.0/8"])
def test_what_is_no_network_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match=r"options\.ssh_from: must be networks"):
        check_options(_task(ssh_from=given), "AWS")


def test_the_network_of_machines() -> None:
    assert network_of(_task()) == Network()
    assert network_of(_task(network="vpc-1, private")) == Network(("vpc-1",), private=True)
    assert network_of(_task(network="subnet-1,subnet-2")).parts == ("subnet-1", "subnet-2")
    with pytest.raises(InvalidInput, match=r"options\.network"):
        check_options(_task(network="private"), "AWS")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"options": {"pod": "x"}}, r"options\.pod: unknown option; must be one of network"),
        ({"mounts": {"/data": "claim:x"}}, "mounts: not supported by AWS"),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        check_options(Task("#!/bin/sh\n", cloud="aws", **more), "AWS")


def test_tags_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    tagged = Task("#!/bin/sh\n", cloud="aws", tags={"team": "a"})
    assert user_tags(tagged) == {"team": "a"}
    monkeypatch.setenv(DEFAULTS, "team=b, cost-center=42,")
    assert user_tags(tagged) == {"team": "a", "cost-center": "42"}
    monkeypatch.setenv(DEFAULTS, "team")
    with pytest.raises(InvalidInput, match="SOJOURN_TAGS must be NAME=VALUE pairs"):
        user_tags(_task())


_CONTAINER = "docker://python:3.12"


@pytest.mark.parametrize(
    ("image", "options", "gpus", "booted"),
    [
        ("nvidia", {}, False, "nvidia"),
        (_CONTAINER, {}, False, "ubuntu"),
        (_CONTAINER, {}, True, "nvidia"),
        (_CONTAINER, {"vm_image": "mine"}, True, "mine"),
        (_CONTAINER, {"vm_image": ""}, True, "nvidia"),
    ],
)
def test_what_a_machine_boots_from(
    image: str, options: dict[str, str], gpus: bool, booted: str
) -> None:
    task = Task("#!/bin/sh\n", cloud="aws", image=image, options=options)
    check_options(task, "AWS")
    assert machine_image(task, gpus=gpus) == booted


@pytest.mark.parametrize(
    ("image", "options", "told"),
    [
        ("ubuntu", {"vm_image": "ubuntu"}, r"options\.vm_image: requires a container image"),
        (_CONTAINER, {"vm_image": _CONTAINER}, r"options\.vm_image: must be a machine image"),
        ("docker://Python", {}, "image: must be docker://"),
    ],
)
def test_images_that_are_refused(image: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        check_options(Task("#!/bin/sh\n", cloud="aws", image=image, options=options), "AWS")


@pytest.mark.parametrize(
    "key", ["ssh-ed25519", "A B", "ssh-rsa AAAAB3NzaC1yc2EAAA\nssh-rsa B", "x" * 9]
)
def test_a_key_is_one_line(key: str) -> None:
    with pytest.raises(InvalidInput, match=r"options\.ssh_key: must be one public SSH key"):
        check_options(Task("#!/bin/sh", options={"ssh_key": key}), "AWS")


@pytest.mark.parametrize("comment", ["", " me@laptop", " two words"])
def test_a_key_may_have_a_comment(comment: str) -> None:
    key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO{comment}\n"
    check_options(Task("#!/bin/sh", options={"ssh_key": key}), "AWS")
