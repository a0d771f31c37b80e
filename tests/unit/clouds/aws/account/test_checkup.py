"""`sojourn doctor` on an account: it makes nothing, and never fails."""

from __future__ import annotations

import pytest

from sojourn.cli.checkup import checkup
from sojourn.clouds import aws
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User, allow


def _findings() -> dict[str, tuple[str, str]]:
    return {finding.subject: (finding.verdict, finding.detail) for finding in aws.examine({})}


def test_an_administrator_lacks_nothing(laptop: SimAWS) -> None:
    found = _findings()
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert ":user/administrator in account " in found["aws identity"][1]
    assert found["aws region"][1].startswith("us-west-1")
    assert "vpc-" in found["aws network"][1]
    assert "32 on demand, 32 spot" in found["aws quotas"][1]


def test_nothing_is_made(laptop: SimAWS) -> None:
    _findings()
    assert laptop.inventory() == []


def test_missing_permissions_are_named(laptop: SimAWS, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = allow("s3:*", "autoscaling:*", "ec2:Describe*", "ec2:CreateSecurityGroup")
    for name, value in laptop.user(policy).items():
        monkeypatch.setenv(name, value)
    found = _findings()
    verdict, detail = found["aws permissions"]
    assert verdict == "note"
    for action in ("iam:GetRole", "ec2:ImportKeyPair", "ec2:CreateLaunchTemplate"):
        assert action in detail
    for action in ("s3:", "autoscaling:", "ec2:Describe"):
        assert action not in detail
    assert "aws quotas" not in found  # they may not be known, and that is no harm


def test_permissions_are_named_as_policies_have_them(
    laptop: SimAWS, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in laptop.user(allow("sts:GetCallerIdentity")).items():
        monkeypatch.setenv(name, value)
    _, detail = _findings()["aws permissions"]
    assert "s3:ListAllMyBuckets" in detail
    assert "s3:ListBuckets" not in detail


def test_a_login_that_is_over_is_a_note(laptop: SimAWS) -> None:
    laptop.fail("sts:*", code="ExpiredToken", status=403, times=9)
    [(subject, (verdict, detail))] = _findings().items()
    assert (subject, verdict) == ("aws identity", "note")
    assert "aws sso login" in detail


def test_a_region_without_a_default_network_is_told(laptop: SimAWS, user: User) -> None:
    [vpc] = user.ec2.describe_vpcs()["Vpcs"]
    for subnet in user.ec2.describe_subnets()["Subnets"]:
        user.ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    user.ec2.delete_vpc(VpcId=vpc["VpcId"])
    verdict, detail = _findings()["aws network"]
    assert verdict == "note"
    assert "aws ec2 create-default-vpc --region us-west-1" in detail


def test_what_nobody_thought_of_does_not_end_the_check_up(
    laptop: SimAWS, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "examine", lambda: iter([1 / 0]))
    notes = {finding.subject: finding for finding in checkup()}
    assert notes["aws account"].verdict == "note"
