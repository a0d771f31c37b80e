"""What a region has to offer, and what it has not."""

from __future__ import annotations

import pytest

from sojourn.clouds.az import machine_types
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from sojourn.clouds.az.machine_types import has_gpus, size
from sojourn.clouds.az.machines import Offers
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, InvalidInput
from sojourn.core.task import Storage, Task
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User

PLAN = "ubuntu@nvidia:ngc_azure_17_11:ngc-base-version-24_3-gen2:latest"


def _check(**more: object) -> None:
    task = Task("#!/bin/sh", cloud="az", **more)  # type: ignore[arg-type]
    list(AzureCloud(Account()).check(Context(), task))


def test_the_usual_task(laptop: SimAzure) -> None:
    offer = Offers(Account()).find(Task("#!/bin/sh", cloud="az"))
    assert (offer.region, offer.size.name) == ("westus2", "Standard_F8s_v2")
    assert offer.image.name.urn == "Canonical:ubuntu-24_04-lts:server:latest"
    assert offer.image.pythons == ("312",)


def test_an_arm_machine_gets_the_image_for_it(laptop: SimAzure) -> None:
    offer = Offers(Account()).find(Task("#!/bin/sh", machine="Standard_D2ps_v5"))
    assert offer.image.name.sku == "server-arm64"
    assert offer.image.architecture == "Arm64"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"machine": "m+k80"},
            r"machine: Standard_NC6 is not available .* retired K80s: use m\+t4",
        ),
        ({"machine": "Standard_NC24s_v3"}, r"retired V100s: use m\+t4 .* or m\+a100"),
        ({"machine": "Standard_X1"}, r"machine: Standard_X1 is not available in westus2; run `az"),
        ({"region": "moonbase"}, "region: unknown region 'moonbase'; Azure has: australiaeast"),
        ({"machine": "s", "spot": 0}, "spot: Standard_B1s is not offered as a spot machine"),
        ({"spot": 0.000001}, r"spot: must be 0 or at least 0\.00001"),
        ({"image": "u@a:b:c:latest"}, "image: image a:b:c:latest not found in westus2"),
        ({"image": "u@Canonical:ubuntu-24_04-lts:server:1.2.3"}, "not found in westus2"),
        ({"image": "u@Canonical:ubuntu-24_04-lts:server-arm64:latest"}, "is for Arm64, but"),
        ({"image": "sojourn:tools"}, "sojourn:tools not found in westus2; run `sojourn image make"),
        ({"image": PLAN}, "the terms of nvidia:.* are not accepted; run `az vm image terms accept"),
        ({"disk_size": 5000}, "disk_size: must be at most 4095"),
        ({"mounts": {"/x": "y"}}, "mounts: not supported by Azure"),
        ({"options": {"x": "y"}}, r"options\.x: unknown option; must be one of network"),
        ({"permission_set": "x"}, "permission_set: must be"),
    ],
)
def test_what_is_refused_before_anything_is_made(
    laptop: SimAzure, more: dict[str, object], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        _check(**more)
    assert laptop.inventory() == []


def test_terms_that_were_accepted(laptop: SimAzure, user: User) -> None:
    path = (
        "providers/Microsoft.MarketplaceOrdering/offerTypes/virtualmachine/publishers/nvidia/"
        "offers/ngc_azure_17_11/plans/ngc-base-version-24_3-gen2/agreements/current"
    )
    terms = user.get(path)["properties"]
    user.put(path, {"properties": {**terms, "accepted": True}})
    _check(image=PLAN)
    offer = Offers(Account()).find(Task("#!/bin/sh", image=PLAN))
    assert dict(offer.image.plan)["product"] == "ngc_azure_17_11"


def test_identities_that_are_not_there(laptop: SimAzure, user: User) -> None:
    made = user.make_identity(user.make_group())["id"]
    with pytest.raises(InvalidInput, match=r"permission_set: identity .*-two not found"):
        _check(permission_set=f"{made},{made}-two")


def _stored(**options: str) -> Storage:
    return Storage(container="box", container_opts=options)


def test_containers_that_are_not_there(laptop: SimAzure, user: User) -> None:
    user.make_container(user.make_group())
    _check(storage=_stored(account="anaccount"))
    _check(storage=_stored(account="anaccount", key="x"))
    for storage, told in (
        (_stored(), r"storage\.container_opts\.account: must be the name of the storage account"),
        (_stored(account="other"), "storage account other not found in this subscription"),
        (_stored(account="anaccount", x="y"), r"storage\.container_opts\.x: not supported"),
        (
            Storage(container="none", container_opts={"account": "anaccount"}),
            r"storage\.container: container none not found in storage account anaccount",
        ),
    ):
        with pytest.raises(InvalidInput, match=told):
            _check(storage=storage)


def test_a_subscription_that_is_none(laptop: SimAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "00000000-0000-0000-0000-000000000000")
    with pytest.raises(AuthError, match="Check AZURE_SUBSCRIPTION_ID"):
        _check()


@pytest.mark.parametrize(
    ("machine", "offer"),
    [("m", "ubuntu-24_04-lts"), ("m+t4", "ubuntu-2204"), ("Standard_NV4as_v4", "")],
)
def test_a_container_has_a_machine_image_below_it(
    laptop: SimAzure, machine: str, offer: str
) -> None:
    assert has_gpus(size(machine)) is (offer == "ubuntu-2204")
    if offer:
        task = Task("#!/bin/sh", cloud="az", machine=machine, image="docker://python:3.12")
        assert Offers(Account()).find(task).image.name.offer == offer


def test_the_machine_image_below_a_container_is_named_if_it_is_wrong(laptop: SimAzure) -> None:
    with pytest.raises(InvalidInput, match=r"options\.vm_image: must be {user}@{publisher}"):
        _check(image="docker://python:3.12", options={"vm_image": "nothing"})


def test_a_region_without_the_stand_in_is_refused_with_both_that_were_tried(
    laptop: SimAzure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(machine_types._STAND_INS, "m+v100", "Standard_Absent")
    with pytest.raises(InvalidInput) as caught:
        _check(machine="m+v100")
    assert caught.value.message == (
        "machine: Azure has retired the V100s of m+v100, and westus2 has neither Standard_NC6s_v3 "
        "nor Standard_Absent in this subscription; use another region, such as us-east, or another "
        "machine"
    )


@pytest.mark.parametrize(
    ("machine", "size"),
    [
        ("m+v100", "Standard_NC16as_T4_v3"),
        ("l+v100", "Standard_NC64as_T4_v3"),
        ("xl+v100", "Standard_NC64as_T4_v3"),
    ],
)
def test_another_size_stands_in_for_one_with_v100s_and_the_user_is_warned(
    laptop: SimAzure, machine: str, size: str
) -> None:
    task = Task("#!/bin/sh", machine=machine)
    offers = Offers(Account())
    assert offers.find(task).size.name == size
    assert f"Using {size} for {machine}: Azure has retired V100s" in offers.replaced(task)
