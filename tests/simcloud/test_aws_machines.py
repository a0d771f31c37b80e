"""A simulated AWS account with machines that run: what they see, how they end, a whole loop."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.fleet import Instance
from tests.simcloud.aws_user import User, allow
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.support.waiting import until

_IMDS = "http://169.254.169.254/latest"
_PRELUDE = f"""\
#!/bin/bash
set -e
token=$(curl -sf -X PUT {_IMDS}/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60')
imds() {{ curl -sf -H "X-aws-ec2-metadata-token: $token" {_IMDS}/"$1"; }}
region=$(imds meta-data/placement/region)
id=$(imds meta-data/instance-id)
secrets=$(imds meta-data/iam/security-credentials/a-role)
field() {{ sed -n 's|.*"'$1'": "\\([^"]*\\)".*|\\1|p' <<<"$secrets"; }}
signed() {{ # with the header that S3 demands
  service=$1; shift
  curl -sSf --aws-sigv4 "aws:amz:$region:$service" -H "x-amz-security-token: $(field Token)" \\
    -H "x-amz-content-sha256: UNSIGNED-PAYLOAD" \\
    --user "$(field AccessKeyId):$(field SecretAccessKey)" "$@"
}}
query() {{ # of services but S3, whose bodies are signed
  service=$1; shift
  curl -sSf --aws-sigv4 "aws:amz:$region:$service" -H "x-amz-security-token: $(field Token)" \\
    --user "$(field AccessKeyId):$(field SecretAccessKey)" --data "$1" "$endpoint/"
}}
"""


@pytest.fixture
def aws(host: Host) -> Iterator[SimAWS]:
    with SimAWS(host) as aws:
        yield aws


def _script(aws: SimAWS, *lines: str) -> bytes:
    return "\n".join([_PRELUDE, f"endpoint={aws.endpoint}", *lines, ""]).encode()


def _running(aws: SimAWS, count: int = 1) -> list[Instance]:
    """The instances that run, once there are this many."""

    def found() -> list[Instance]:
        return [each for each in aws.instances() if each.state == "running"]

    until(lambda: len(found()) == count)
    return found()


def _machine(instance: Instance) -> RunningMachine:
    assert instance.machine is not None
    return instance.machine


def _content(user: User, key: str) -> str:
    try:
        return str(user.s3.get_object(Bucket="a-bucket", Key=key)["Body"].read().decode())
    except user.s3.exceptions.NoSuchKey:
        return ""


def _remove_all(user: User) -> None:
    user.delete_group()
    user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    user.remove_profile()
    user.remove_bucket()


def test_a_whole_loop(aws: SimAWS, user: User) -> None:
    """Launch, write, be taken away, be replaced, append, leave the group; nothing is left."""
    script = _script(
        aws,
        'signed s3 "$endpoint/a-bucket/log" > /tmp/log || true',
        'echo "$id" >> /tmp/log',
        'signed s3 -T /tmp/log "$endpoint/a-bucket/log"',
        "[ $(wc -l < /tmp/log) = 2 ] || exec sleep 1000",
        "ask='Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01'",
        'query autoscaling "$ask&InstanceId=$id&ShouldDecrementDesiredCapacity=true"',
        "sleep 1000",
    )
    user.make_bucket()
    user.make_profile()
    user.make_template(script, spot=True, IamInstanceProfile={"Name": "a-profile"})
    user.make_group()
    user.set_desired(1)
    until(lambda: _content(user, "log"))
    [first] = _running(aws)
    assert _content(user, "log").split() == [first.id]

    aws.interrupt(first.id, notice=False)
    until(lambda: len(_content(user, "log").split()) == 2)
    second = aws.instances()[-1]
    assert _content(user, "log").split() == [first.id, second.id]
    until(lambda: second.state == "terminated")
    until(lambda: not user.group()["Instances"])
    assert user.group()["DesiredCapacity"] == 0
    machine = f"arn:aws:sts::123456789012:assumed-role/a-role/{second.id}"
    assert "autoscaling:TerminateInstanceInAutoScalingGroup" in [
        call.name for call in aws.calls if call.who == machine
    ]

    _remove_all(user)
    assert aws.inventory() == []


def test_the_metadata_service_has_version_2_only(aws: SimAWS, user: User) -> None:
    user.make_profile()
    user.make_template(b"#!/bin/sh\n", spot=True, IamInstanceProfile={"Name": "a-profile"})
    user.make_group(1, VPCZoneIdentifier=user.subnets("b"))
    [instance] = _running(aws)
    machine = _machine(instance)

    def ask(path: str, token: str = "", *options: str) -> tuple[str, int]:
        header = ("-H", f"X-aws-ec2-metadata-token: {token}") if token else ()
        asked = machine.run(
            "curl", "-s", "-w", "\n%{http_code}", *header, *options, f"{_IMDS}/{path}"
        )
        text, _, status = asked.stdout.rpartition("\n")
        return text, int(status)

    ttl = "X-aws-ec2-metadata-token-ttl-seconds"
    assert ask("meta-data/instance-id")[1] == 401
    assert ask("meta-data/instance-id", "made-up")[1] == 401
    assert ask("api/token", "", "-X", "PUT")[1] == 400
    assert ask("api/token", "", "-X", "PUT", "-H", f"{ttl}: 30000")[1] == 400
    shown = machine.run("curl", "-si", "-X", "PUT", "-H", f"{ttl}: 60", f"{_IMDS}/api/token").stdout
    assert f"{ttl}: 60".lower() in shown
    token = shown.splitlines()[-1]
    assert ask("meta-data/instance-id", token) == (instance.id, 200)
    assert ask("meta-data/placement/region", token) == ("us-west-1", 200)
    assert ask("meta-data/placement/availability-zone", token) == ("us-west-1b", 200)
    assert ask("meta-data/instance-type", token) == ("m5.large", 200)
    assert ask("meta-data/instance-life-cycle", token) == ("spot", 200)
    assert ask("meta-data/autoscaling/target-lifecycle-state", token) == ("InService", 200)
    assert ask("meta-data/iam/security-credentials/", token) == ("a-role", 200)
    assert ask("user-data", token) == ("#!/bin/sh\n", 200)
    for missing in ("spot/instance-action", "events/recommendations/rebalance", "tags/instance"):
        assert ask(f"meta-data/{missing}", token)[1] == 404
    secret = json.loads(ask("meta-data/iam/security-credentials/a-role", token)[0])
    assert secret["Code"] == "Success"
    assert secret["Expiration"] > secret["LastUpdated"]

    aws.recommend_rebalance(instance.id)
    assert "noticeTime" in ask("meta-data/events/recommendations/rebalance", token)[0]
    aws.timing.notice = 600
    aws.interrupt(instance.id, notice=True)
    action = json.loads(ask("meta-data/spot/instance-action", token)[0])
    assert action["action"] == "terminate"
    aws.advance(600)
    until(lambda: instance.state == "terminated")
    assert not machine.alive


def test_credentials_of_a_machine_are_its_roles_and_expire(aws: SimAWS, user: User) -> None:
    user.make_bucket()
    user.make_profile(allow("s3:PutObject", resource="arn:aws:s3:::a-bucket/mine/*"))
    script = _script(
        aws,
        'signed s3 -T /etc/hostname "$endpoint/a-bucket/mine/a" && echo may write its own',
        'signed s3 -T /etc/hostname "$endpoint/a-bucket/other" || echo may not write others',
        'signed s3 "$endpoint/a-bucket/mine/a" || echo may not read',
        "until test -e /dev/shm/go; do sleep 0.05; done",
        'signed s3 -T /etc/hostname "$endpoint/a-bucket/mine/b" || echo too late',
        "secrets=$(imds meta-data/iam/security-credentials/a-role)",
        'signed s3 -T /etc/hostname "$endpoint/a-bucket/mine/b" && echo has new ones',
    )
    user.make_template(script, IamInstanceProfile={"Name": "a-profile"})
    user.make_group(1)
    [instance] = _running(aws)
    until(lambda: "may not read" in _machine(instance).console())
    aws.expire_credentials()
    _machine(instance).run("touch", "/dev/shm/go")
    until(lambda: "has new ones" in _machine(instance).console())
    said = _machine(instance).console()
    for line in ("may write its own", "may not write others", "may not read", "too late"):
        assert line in said
    assert "ExpiredToken" in [call.error for call in aws.calls]


def test_a_machine_that_powers_itself_off_is_terminated_and_replaced(
    aws: SimAWS, user: User
) -> None:
    user.make_template(b"#!/bin/sh\n[ -e /run/stay ] || poweroff\n")
    user.make_group(1)
    until(lambda: len(aws.instances()) >= 2)
    first = aws.instances()[0]
    until(lambda: first.state == "terminated")
    [shown] = [
        instance
        for reservation in user.ec2.describe_instances(InstanceIds=[first.id])["Reservations"]
        for instance in reservation["Instances"]
    ]
    assert shown["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    user.set_desired(0)
    until(lambda: not user.group()["Instances"])


def test_a_machine_that_may_stop_is_stopped_and_then_terminated_by_its_group(
    aws: SimAWS, user: User
) -> None:
    user.make_template(b"#!/bin/sh\npoweroff\n", InstanceInitiatedShutdownBehavior="stop")
    user.make_group(1)
    until(lambda: len(aws.instances()) >= 2)
    assert (
        "EC2 health check"
        in [
            activity["Cause"]
            for activity in user.activities()
            if "Terminating" in activity["Description"]
        ][-1]
    )
    user.set_desired(0)
    until(lambda: not user.group()["Instances"])


def test_termination_lets_a_machine_shut_down_in_order(aws: SimAWS, user: User) -> None:
    script = _script(
        aws,
        "trap 'signed s3 -T /etc/hostname \"$endpoint/a-bucket/last\"; exit' TERM",
        "echo ready",
        "while :; do sleep 0.05; done",
    )
    user.make_bucket()
    user.make_profile()
    user.make_template(
        b"#!/bin/bash\ncat > /usr/local/bin/work <<'END'\n" + script + b"END\n"
        b"chmod +x /usr/local/bin/work\n"
        b"systemd-run --unit=work -p After=network.target -p KillMode=mixed /usr/local/bin/work\n",
        IamInstanceProfile={"Name": "a-profile"},
    )
    user.make_group(1)
    [instance] = _running(aws)
    machine = _machine(instance)
    until(lambda: machine.run("systemctl", "is-active", "work", check=False).returncode == 0)
    until(lambda: "ready" in machine.run("journalctl", "-u", "work").stdout)
    user.set_desired(0)
    until(lambda: instance.state == "terminated")
    assert _content(user, "last")


def test_a_machine_that_does_not_shut_down_is_killed(aws: SimAWS, user: User) -> None:
    aws.timing.shutdown = 0.0
    user.make_template(b"#!/bin/sh\ntrap '' TERM\nsleep 1000\n")
    user.make_group(1)
    [instance] = _running(aws)
    user.ec2.terminate_instances(InstanceIds=[instance.id])
    until(lambda: instance.state == "terminated")
    assert not _machine(instance).alive
    [replacement] = _running(aws)
    assert replacement is not instance


def test_the_group_notices_a_machine_that_breaks(aws: SimAWS, user: User) -> None:
    user.make_template(b"#!/bin/sh\nsleep 1000\n")
    user.make_group(2)
    first, second = _running(aws, 2)
    assert first.zone != second.zone
    _machine(first).kill()
    until(lambda: first.state == "terminated")
    _running(aws, 2)
    assert second.state == "running"


def test_a_group_may_change_its_mind_while_machines_boot(
    aws: SimAWS, user: User, host: Host
) -> None:
    aws.timing.shutdown = 0.5
    user.make_template(b"#!/bin/sh\nsleep 1000\n")
    user.make_group()
    for turn in range(12):
        user.set_desired(turn % 3)
        time.sleep(turn % 4 * 0.05)
    user.set_desired(0)
    until(lambda: not user.group()["Instances"])
    assert {instance.state for instance in aws.instances()} == {"terminated"}
    until(lambda: not [machine for machine in host.machines if machine.alive])
    assert len(aws.inventory()) == 2


def test_closing_the_account_takes_all_machines(host: Host) -> None:
    with SimAWS(host) as aws:
        user = User(aws.environment())
        user.make_template(b"#!/bin/sh\nsleep 1000\n")
        user.make_group(3)
        until(lambda: host.machines)
        user.close()
    assert not [machine for machine in host.machines if machine.alive]
