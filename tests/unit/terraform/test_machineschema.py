"""From the values of a configuration to the task that a machine is."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from sojourn.core.errors import Conflict, InvalidInput
from sojourn.terraform.machine import MachineResource
from sojourn.terraform.machinearguments import name_of, notes_on
from sojourn.terraform.machineschema import MACHINE, is_runner, machine_of
from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.values import UNKNOWN, Object, Unknown, whole
from sojourn.terraform.runnerschema import misnamed_arguments
from sojourn.terraform.sshkeys import public_key

_OF_RUNNERS = [each.name for each in misnamed_arguments()]


def _values(**given: Any) -> Object:
    values = whole(given, MACHINE.block)
    assert values
    return plan(MACHINE.block, None, values, values).state


def test_what_is_not_given_has_its_default() -> None:
    task = machine_of(_values())
    assert (task.cloud, task.region, task.machine) == ("aws", "us-west", "m")
    assert (task.image, task.disk_size, task.spot) == ("ubuntu", 10, -1)
    assert (task.stay, task.timeout, task.idle_timeout) == (True, 86400, 3600)
    assert task.script == "#!/bin/bash"
    assert task.storage.output == ""


@pytest.mark.parametrize(
    ("kind", "gpu", "machine", "image"),
    [
        ("m", "", "m", "ubuntu"),
        ("l", "tesla", "l+v100", "nvidia"),
        ("l", "testla", "l+v100", "nvidia"),
        ("xl", "k80", "xl+k80", "nvidia"),
        ("t2.micro", "", "t2.micro", "ubuntu"),
    ],
)
def test_types_and_gpus(kind: str, gpu: str, machine: str, image: str) -> None:
    task = machine_of(_values(instance_type=kind, instance_gpu=gpu))
    assert (task.machine, task.image) == (machine, image)


@pytest.mark.parametrize(
    ("spot", "price", "expected"),
    [
        (False, -1, -1),
        (False, Decimal("0.5"), -1),
        (True, -1, 0),
        (True, Decimal("0.12345"), 0.12345),
    ],
)
def test_spot(spot: bool, price: Any, expected: float) -> None:
    assert machine_of(_values(spot=spot, spot_price=price)).spot == expected


@pytest.mark.parametrize("cloud", ["k8s", "kubernetes"])
def test_arguments_of_one_cloud(cloud: str) -> None:
    given = _values(cloud=cloud, kubernetes_node_selector={"a": "b", "c": "d"})
    assert machine_of(given).region == "a=b,c=d"
    with pytest.raises(InvalidInput, match="kubernetes_node_selector: has no effect with cloud ="):
        machine_of(_values(kubernetes_node_selector={"a": "b"}))
    assert machine_of(_values(aws_subnet_id="subnet-1a")).options == {"network": "subnet-1a"}


def test_what_is_not_known_yet_is_taken_for_valid() -> None:
    for attribute in MACHINE.block.attributes:
        if attribute.optional and attribute.name not in _OF_RUNNERS:
            machine_of(_values(**{attribute.name: UNKNOWN}))


def test_old_names() -> None:
    given = _values(ami="iterative-cml", instance_name="machine")
    assert name_of(given) == "machine"
    assert machine_of(given).image == "ubuntu"
    assert len(notes_on(given)) == 3
    assert notes_on(_values()) == []
    assert machine_of(_values(image="iterative-cml", instance_gpu="t4")).image == "nvidia"


@pytest.mark.parametrize("name", ["repo", "driver", "labels"])
def test_a_runner_by_the_wrong_name_is_one(name: str) -> None:
    given = _values(**{name: "x"})
    assert is_runner(given)
    assert (given["timeout"], given["idle_timeout"]) == (0, 300)
    assert not is_runner(_values())


@pytest.mark.parametrize("name", ["token", "single", "docker_volumes", "cml_version"])
def test_what_only_runners_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: belongs to a runner"):
        machine_of(_values(**{name: "x"}))


def test_problems_have_the_names_of_arguments() -> None:
    with pytest.raises(InvalidInput) as caught:
        machine_of(
            _values(startup_script="echo", idle_timeout=-1, instance_hdd_size=Decimal("1.5"))
        )
    paths = {problem.path for problem in caught.value.problems}
    assert paths == {"startup_script", "idle_timeout", "instance_hdd_size"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"startup_script": "#cloud-config\npackages: [jq]\n"}, "startup_script: is #cloud-config"),
        ({"spot_price": Decimal("0.123456")}, "spot_price: must have at most 5 decimals"),
    ],
)
def test_what_the_old_provider_took_or_cut_off_says_what_to_write(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        machine_of(_values(**given))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("price", [Decimal("0.12345"), Decimal("-1"), 2, None])
def test_a_price_with_five_decimals_is_one(price: Any) -> None:
    machine_of(_values(spot_price=price))


@pytest.mark.parametrize(("state", "replaced"), [("running", False), ("stopped", False)])
def test_one_that_goes_on_is_not_replaced(state: str, replaced: bool) -> None:
    assert bool(_replaced(state)) is replaced


@pytest.mark.parametrize("state", ["succeeded", "failed", "timed-out"])
def test_one_that_ended_is_replaced(state: str) -> None:
    assert _replaced(state) == (("state",),)


def _replaced(state: str) -> tuple[Any, ...]:
    config = whole({"cloud": "local"}, MACHINE.block)
    assert config
    prior = plan(MACHINE.block, None, config, config).state
    prior = {name: "" if isinstance(v, Unknown) else v for name, v in prior.items()}
    prior["state"] = state
    return plan(MACHINE.block, prior, config, config).replace


def test_a_key_comes_in_any_form() -> None:
    pem, openssh = (
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.PrivateFormat.OpenSSH,
    )
    keys: list[tuple[Any, Any, str]] = [
        (rsa.generate_private_key(65537, 2048), pem, "ssh-rsa "),
        (ec.generate_private_key(ec.SECP256R1()), pem, "ecdsa-sha2-nistp256 "),
        (ed25519.Ed25519PrivateKey.generate(), openssh, "ssh-ed25519 "),
    ]
    for key, form, begin in keys:
        text = key.private_bytes(
            serialization.Encoding.PEM, form, serialization.NoEncryption()
        ).decode()
        assert public_key(text.strip()).startswith(begin)
        options = machine_of(_values(ssh_private=text)).options
        assert options == {"ssh_key": public_key(text)}
        assert machine_of(_values(cloud="local", ssh_private=text)).options == {}
    with pytest.raises(InvalidInput, match="ssh_private: must be a private SSH key"):
        public_key("-----BEGIN")


def test_a_machine_of_the_old_provider_is_refused_with_the_way_out() -> None:
    with pytest.raises(Conflict, match="was created by another provider") as caught:
        MachineResource().upgrade(0, {"id": "cml-machine-abc", "cloud": "aws"})
    assert "terraform state rm" in caught.value.hint
