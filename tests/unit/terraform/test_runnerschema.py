"""From the values of a configuration to the runner that they describe."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest

from sojourn.core.errors import Conflict, InvalidInput
from sojourn.core.runner import Runner
from sojourn.runners.target import Target
from sojourn.terraform.machinearguments import notes_on
from sojourn.terraform.machineschema import MACHINE
from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.schema import Schema
from sojourn.terraform.plugin.values import UNKNOWN, Object, whole
from sojourn.terraform.runner import RunnerResource
from sojourn.terraform.runnerschema import (
    RUNNER,
    described,
    launch_fields,
    notes_on_runner,
    settings_of,
    startup_of,
    token_of,
)

_REPO = "https://github.com/acme/widgets"


def _values(schema: Schema = RUNNER, **given: Any) -> Object:
    config = whole({"repo": _REPO, "driver": "github", **given}, schema.block)
    assert config
    return plan(schema.block, None, config, config).state


@pytest.mark.parametrize("schema", [RUNNER, MACHINE])
def test_what_is_not_given_has_its_default(schema: Schema) -> None:
    settings = settings_of(_values(schema), Target("github", _REPO, "secret"))
    assert (settings.driver, settings.repo, settings.name) == ("github", _REPO, "")
    assert (settings.labels, settings.idle_timeout, settings.single) == (("cml",), 300, None)
    assert (settings.startup_script, settings.token_on_machine, settings.docker) == (
        "",
        None,
        False,
    )
    assert "secret" not in repr(settings)
    task = described(_values(schema))
    assert (task.cloud, task.machine, task.timeout, task.image) == ("aws", "m", 0, "ubuntu")
    assert task.runner == Runner("github", _REPO, "", "")


def test_what_is_given() -> None:
    given = _values(
        name="builder",
        labels="a, b",
        single=False,
        idle_timeout=-1,
        timeout=Decimal(60),
        instance_gpu="tesla",
        token_on_machine=False,
        docker=True,
        ca_file="ca.pem",
        upload_program=True,
    )
    settings = settings_of(given, Target("github", _REPO))
    assert (settings.name, settings.labels, settings.single) == ("builder", ("a", "b"), False)
    assert (settings.idle_timeout, settings.token_on_machine, settings.docker) == (0, False, True)
    assert (settings.ca_file, settings.upload_program) == ("ca.pem", True)
    fields = launch_fields(given)
    assert (fields["machine"], fields["image"], fields["timeout"]) == ("m+v100", "nvidia", 60)


def test_what_is_not_known_yet_is_taken_for_valid() -> None:
    for attribute in RUNNER.block.attributes:
        if attribute.optional:
            described(_values(RUNNER, **{attribute.name: UNKNOWN}))


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"driver": "sourceforge"}, "driver"),
        ({"repo": "acme"}, "repo"),
        ({"labels": "a,,b"}, "labels"),
        ({"idle_timeout": Decimal("1.5")}, "idle_timeout"),
        ({"timeout": -1}, "timeout"),
        ({"docker_volumes": ["/cache"]}, "docker_volumes"),
        ({"startup_script": "apt install make"}, "startup_script"),
        ({"instance_hdd_size": Decimal("1.5")}, "instance_hdd_size"),
    ],
)
def test_problems_have_the_names_of_arguments(given: Object, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        described(_values(**given))
    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize(
    ("given", "script"),
    [
        ("", ""),
        ("#!/bin/bash", ""),
        ("#!/bin/sh\necho", "#!/bin/sh\necho"),
        (base64.b64encode(b"#!/bin/sh\necho").decode(), "#!/bin/sh\necho"),
        (base64.b64encode(b"apt install make\n").decode(), "#!/bin/bash\napt install make\n"),
        ("date", "date"),  # base64 by chance
        (base64.b64encode(b"\0\1\2").decode(), "AAEC"),
    ],
)
def test_a_startup_script_is_text_or_base64(given: str, script: str) -> None:
    assert startup_of(_values(startup_script=given)) == script


@pytest.mark.parametrize("schema", [RUNNER, MACHINE])
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("#cloud-config\nruncmd:\n  - touch /tmp/x\n", "#cloud-config"),
        ("\n#cloud-config\nruncmd: []\n", "#cloud-config"),
        ("#include\nhttps://acme.example/x\n", "#include"),
        ("## template: jinja\n#cloud-config\n", "a template of cloud-init"),
        ("Content-Type: multipart/mixed; boundary=x\n", "MIME multi-part"),
        ("MIME-Version: 1.0\n", "MIME multi-part"),
    ],
)
def test_what_only_cloud_init_reads_is_refused_once(
    schema: Schema, encoded: bool, given: str, name: str
) -> None:
    text = base64.b64encode(given.encode()).decode() if encoded else given
    with pytest.raises(InvalidInput) as caught:
        described(_values(schema, startup_script=text))
    [problem] = caught.value.problems
    assert problem.path == "startup_script"
    assert problem.message.startswith(f"is {name}, which is not supported")


def test_a_script_that_only_mentions_cloud_init_is_one() -> None:
    described(_values(startup_script="#!/bin/sh\n#cloud-config\n"))
    described(_values(startup_script=base64.b64encode(b"echo '#cloud-config'\n").decode()))


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ({"labels": "a,b"}, {"labels": "b, a"}, ()),
        ({"labels": "a"}, {"labels": "b"}, (("labels",),)),
        ({"repo": _REPO}, {"repo": f"{_REPO}.git"}, ()),
        ({"repo": _REPO}, {"repo": None}, ()),
        ({"repo": _REPO}, {"repo": f"{_REPO}s"}, (("repo",),)),
        ({"token": "a"}, {"token": "b"}, ()),
        ({"cml_version": "1"}, {"cml_version": "2"}, ()),
        ({"single": True}, {"single": False}, (("single",),)),
        ({"ca_file": None}, {"ca_file": "ca.pem"}, (("ca_file",),)),
        ({"ca_file": None}, {"ca_file": ""}, ()),
    ],
)
def test_what_is_another_runner(before: Object, after: Object, replaced: Any) -> None:
    prior = {**_values(**before), "id": "tpi-1", "ssh_private": ""}
    config = whole({"repo": _REPO, "driver": "github", **after}, RUNNER.block)
    assert config
    assert plan(RUNNER.block, prior, {**prior, **after}, config).replace == replaced


def test_volumes_are_refused_when_the_driver_is_found() -> None:
    given = _values(MACHINE, driver=None, docker_volumes=["/cache"])
    described(given)
    with pytest.raises(InvalidInput, match="docker_volumes: has no effect with driver = 'github'"):
        settings_of(given, Target("github", _REPO))


def test_a_token_that_is_kept_nowhere_counts() -> None:
    planned = _values(token_wo="hidden")
    assert planned["token_wo"] is None
    assert token_of(planned, {"token_wo": "hidden"}) == "hidden"
    assert token_of(_values(token="given"), {}) == "given"
    assert token_of(planned, {}) == ""


def test_old_arguments_are_taken_with_a_note() -> None:
    assert list(notes_on_runner(_values(cml_version="0.20"))) != []
    assert list(notes_on_runner(_values())) == []
    given = _values(cloud="k8s", kubernetes_readiness_command="true")
    assert notes_on(given) == ["kubernetes_readiness_command has no effect any more"]
    assert "options" in launch_fields(given)


def test_a_runner_of_the_old_provider_is_refused_with_the_way_out() -> None:
    with pytest.raises(Conflict, match="was created by another provider"):
        RunnerResource().upgrade(0, {"id": "cml-runner-abc", "cloud": "aws"})
