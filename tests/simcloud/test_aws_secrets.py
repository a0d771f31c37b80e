"""Where secrets are, and are not, while a task runs on a machine and afterwards."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sojourn
from tests.contract.clouds import aws_kit
from tests.contract.clouds.aws_kit import AwsKit
from tests.simcloud.aws_user import User
from tests.simcloud.machines.running import RunningMachine
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SCRIPT = """#!/bin/bash
[ -n "$GIVEN" ] && [ -n "$IMPORTED" ] && [ -n "$GLOB_ONE" ] && echo all are here
mkdir -p output; echo result > output/file
touch /dev/shm/waiting
until [ -e /dev/shm/go ]; do sleep 0.1; done
"""
VALUES = {
    "GIVEN": "s3cr3t-given-5a1f",
    "IMPORTED": "s3cr3t-imported-77bc",
    "GLOB_ONE": "s3cr3t-matched-90de",
}
ENVIRONMENT = {"GIVEN": VALUES["GIVEN"], "IMPORTED": "", "GLOB_*": ""}
IMDS = "http://169.254.169.254/latest"
PROGRAM = re.compile(rb"<<'END'\n(.*?)\nEND\n", re.DOTALL)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsKit]:
    kit = aws_kit.make(tmp_path_factory)
    for name, value in {**kit.environment(), **VALUES}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GIVEN")
    try:
        yield kit
    finally:
        kit.close()


_AGENT = "sojourn.clouds.vm.on_machine.agent"


def test_secrets_are_in_the_store_and_in_the_scripts_environment_alone(
    kit: AwsKit, tmp_path: Path
) -> None:
    said: list[Any] = []
    task = sojourn.Task(
        SCRIPT,
        cloud="aws",
        name="secrets",
        tags={"project": "open"},
        environment=ENVIRONMENT,
        storage=sojourn.Storage(workdir=str(tmp_path), output="output"),
    )
    handle = sojourn.create(task, on_event=said.append)
    machine = waiting_machine(kit)
    user = User(kit.environment())
    try:
        secrets = Secrets(kit)
        secrets.check("processes", list(processes(machine)))
        secrets.check("the account", list(in_account(user, handle.id)))
        secrets.check("the store", list(in_store(user, handle.id)))
        secrets.check("files, while it runs", list(files(machine)))
        check_role(machine, user, handle.id)
        kit.appear("go")
        assert handle.wait().exit_code == 0
        assert "all are here" in [line.text for line in handle.logs()]
        secrets.check("events", [*said, *handle.events(), handle.status(), handle.task()])
        handle.delete()
        secrets.check("files", list(files(machine)))
        secrets.check("the console", [machine.console()])
    finally:
        user.close()


class Secrets:
    """The values of the task, and the laptop's own key."""

    def __init__(self, kit: AwsKit) -> None:
        own = kit.environment()
        keys = (own["AWS_SECRET_ACCESS_KEY"], own["AWS_ACCESS_KEY_ID"])
        self._values = [value.encode() for value in (*VALUES.values(), *keys)]

    def check(self, where: str, things: list[Any]) -> None:
        assert things, f"{where}: nothing to look at"
        for thing in things:
            text = thing if isinstance(thing, bytes) else repr(thing).encode()
            found = [value for value in self._values if value in text]
            assert not found, f"{where}: {found} in {text[:500]!r}"


def waiting_machine(kit: AwsKit) -> RunningMachine:
    def machines() -> list[RunningMachine]:
        return [i.machine for i in kit.account.instances() if i.machine]

    def waits() -> bool:
        return any(path.name == "waiting" for each in machines() for path in each.files())

    until(waits, 60)
    [machine] = machines()
    return machine


def processes(machine: RunningMachine) -> Iterator[tuple[Any, ...]]:
    """Arguments of all, and environments of all that are not in the session of the script."""
    found = machine.processes()
    secret = {_session(each.pid) for each in found if "GIVEN" in each.environ}
    [agent] = {_session(each.pid) for each in found if _AGENT in each.argv}
    assert len(secret) == 1
    assert agent not in secret
    for process in found:
        yield process.argv
        if _session(process.pid) not in secret:
            yield (process.environ,)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def files(machine: RunningMachine) -> Iterator[bytes]:
    found = list(machine.files())
    assert "settings.json" in {path.name for path in found}
    for path in found:
        with suppress(FileNotFoundError):
            yield path.read_bytes()


def in_account(user: User, name: str) -> Iterator[Any]:
    """What the services keep beside the store: tags, templates, policies, first scripts."""
    ec2, iam = user.ec2, user.iam
    yield user.s3.get_bucket_tagging(Bucket=name)["TagSet"]
    yield ec2.describe_tags()["Tags"]
    yield iam.get_role(RoleName=name)
    yield iam.get_role_policy(RoleName=name, PolicyName="task")
    yield iam.get_instance_profile(InstanceProfileName=name)
    yield ec2.describe_key_pairs()["KeyPairs"]
    yield ec2.describe_instances()["Reservations"]
    yield user.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    [version] = ec2.describe_launch_template_versions(LaunchTemplateName=name)[
        "LaunchTemplateVersions"
    ]
    yield version
    script = base64.b64decode(version["LaunchTemplateData"]["UserData"])
    yield script
    program = PROGRAM.search(script)
    assert program
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(program[1])))
    for file in archive.namelist():
        yield archive.read(file)


def in_store(user: User, name: str) -> Iterator[bytes]:
    """All objects but the one that is for secrets."""
    paths = [item["Key"] for item in user.s3.list_objects_v2(Bucket=name)["Contents"]]
    assert {"task.json", "environment.json"} <= set(paths)
    for path in paths:
        content = user.s3.get_object(Bucket=name, Key=path)["Body"].read()
        if path == "environment.json":
            assert {**VALUES, **json.loads(content)} == json.loads(content)
        else:
            yield content


def check_role(machine: RunningMachine, user: User, name: str) -> None:
    """With the machine's own credentials, all that is not its business is refused."""
    theirs = credentials(machine)
    role = User(
        {
            "AWS_ENDPOINT_URL": user.s3.meta.endpoint_url,
            "AWS_ACCESS_KEY_ID": theirs["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": theirs["SecretAccessKey"],
            "AWS_SESSION_TOKEN": theirs["Token"],
        },
        user.region,
    )
    user.make_bucket("tpi-other")
    user.s3.put_object(Bucket="tpi-other", Key="task.json", Body=b"")
    group = "tpi-other"
    user.autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=group,
        LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
        MinSize=0,
        MaxSize=1,
        AvailabilityZones=[f"{user.region}a"],
    )
    s3, scaling = role.s3, role.autoscaling
    assert s3.get_object(Bucket=name, Key="task.json")["Body"].read()
    refused(s3.get_object, Bucket=name, Key="laptop/seed")
    refused(s3.put_object, Bucket=name, Key="laptop/seed", Body=b"")
    refused(s3.list_buckets)
    refused(s3.list_objects_v2, Bucket="tpi-other")
    refused(s3.get_object, Bucket="tpi-other", Key="task.json")
    refused(s3.put_object, Bucket="tpi-other", Key="task.json", Body=b"")
    refused(s3.delete_bucket, Bucket=name)
    for size in (name, group):
        refused(scaling.set_desired_capacity, AutoScalingGroupName=size, DesiredCapacity=1)
    refused(scaling.delete_auto_scaling_group, AutoScalingGroupName=group)
    refused(scaling.describe_auto_scaling_groups)
    refused(
        scaling.put_scheduled_update_group_action,
        AutoScalingGroupName=group,
        ScheduledActionName="mine",
        DesiredCapacity=1,
    )
    refused(role.ec2.run_instances, ImageId="ami-1", MinCount=1, MaxCount=1)
    role.ec2.describe_instances()  # whether another machine is gone; without its user data:
    refused(role.ec2.describe_instance_attribute, InstanceId=machine.spec.id, Attribute="userData")
    refused(role.iam.list_roles)
    refused(role.iam.get_role, RoleName=name)
    refused(role.iam.put_role_policy, RoleName=name, PolicyName="task", PolicyDocument="{}")
    role.close()
    user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    user.s3.delete_object(Bucket="tpi-other", Key="task.json")
    user.s3.delete_bucket(Bucket="tpi-other")


def credentials(machine: RunningMachine) -> dict[str, str]:
    token = machine.run(
        *("curl", "-sf", "-X", "PUT", f"{IMDS}/api/token"),
        *("-H", "X-aws-ec2-metadata-token-ttl-seconds: 60"),
    ).stdout
    base = f"{IMDS}/meta-data/iam/security-credentials/"
    header = ("-H", f"X-aws-ec2-metadata-token: {token}")
    role = machine.run("curl", "-sf", *header, base).stdout
    found: dict[str, str] = json.loads(machine.run("curl", "-sf", *header, base + role).stdout)
    return found


def refused(call: Any, **arguments: Any) -> None:
    with pytest.raises(Exception, match=r"AccessDenied|UnauthorizedOperation"):
        call(**arguments)
