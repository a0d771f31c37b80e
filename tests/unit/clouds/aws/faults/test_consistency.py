"""AWS is many services that do not know of each other at once, and others use the account too."""

from __future__ import annotations

import threading
import types
from typing import Any

import pytest

from sojourn import api
from sojourn.clouds.aws import account, store
from sojourn.clouds.aws.scaler import AwsScaler
from sojourn.clouds.vm import store as vm_store
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Cancelled, Conflict, NotFound, SojournError, Transient
from sojourn.core.status import INCOMPLETE
from sojourn.core.task import Storage
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User
from tests.support.waiting import until
from tests.unit.clouds.aws.faults.laptop import ID, Laptop

NAME = str(ID)
_LONG = 600.0  # seconds of the account's clock, which a test moves on


@pytest.fixture
def user(sim: SimAWS) -> Any:
    """Somebody with the SDK."""
    user = User(sim.environment())
    yield user
    user.close()


def test_a_profile_that_is_not_known_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.profile_ready = _LONG
    laptop.ready_when_asked_twice("autoscaling:CreateAutoScalingGroup")
    laptop.create()
    assert laptop.has_all()
    names = [call.name for call in laptop.sim.calls]
    assert names.count("autoscaling:CreateAutoScalingGroup") > 1
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_security_group_that_is_not_known_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.group_ready = _LONG
    laptop.ready_when_asked_twice("ec2:AuthorizeSecurityGroupIngress")
    laptop.create()
    assert laptop.has_all()
    names = [call.name for call in laptop.sim.calls]
    assert names.count("ec2:AuthorizeSecurityGroupIngress") > 1
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_security_group_that_groups_do_not_know_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.group_usable = _LONG
    laptop.ready_when_asked_twice("autoscaling:CreateAutoScalingGroup")
    laptop.create()
    assert laptop.has_all()
    names = [call.name for call in laptop.sim.calls]
    assert names.count("autoscaling:CreateAutoScalingGroup") > 1
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_template_waits_for_the_security_group(laptop: Laptop) -> None:
    """Who creates a task again after a fault may find that it is there, but not yet which."""
    laptop.create()
    made = laptop.cloud.resources(ID, laptop.task())
    template = next(each for each in made if each.title.startswith("launch template"))
    [group] = [each for each in made if each.title.startswith("security group")]
    template.delete(laptop.ctx)
    laptop.cloud.scaler(ID).delete(laptop.ctx)
    group.delete(laptop.ctx)
    laptop.sim.timing.group_ready = 0.5
    again = threading.Thread(target=lambda: group.create(laptop.ctx))
    again.start()
    template.create(laptop.ctx)
    again.join()
    assert "launch template" in " ".join(laptop.sim.inventory())
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_machine_of_which_ec2_does_not_know_yet_is_one_of_the_fleet(laptop: Laptop) -> None:
    laptop.sim.timing.instance_ready = 60
    laptop.create()
    laptop.sim.wait(laptop.sim.instances)
    [instance] = laptop.sim.instances()
    assert [(each.id, each.started) for each in laptop.machines()] == [(instance.id, "")]
    assert laptop.status().ranks
    laptop.sim.advance(60)
    assert [bool(each.started) for each in laptop.machines()] == [True]
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_that_is_not_known_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.bucket_ready = 0.5
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_whose_name_is_not_free_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.bucket_gone = _LONG
    laptop.create()
    laptop.delete()
    laptop.ready_when_asked_twice("s3:CreateBucket")
    laptop.sim.fail("s3:PutBucketTagging", code="OperationAborted", status=409, times=2)
    laptop.create()
    assert laptop.has_all()
    names = [call.name for call in laptop.sim.calls]
    assert names.count("s3:CreateBucket") > 2
    assert names.count("s3:PutBucketTagging") == 4
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_whose_name_is_not_free_for_long_is_told(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.sim.timing.bucket_gone = 3600
    laptop.create()
    laptop.delete()
    monkeypatch.setattr(store, "_PATIENCE", 0.1)
    with pytest.raises(Transient, match=r"(?s)still deleting an earlier .*Try again in an hour"):
        laptop.create()
    assert laptop.sim.inventory() == []


def test_a_bucket_that_is_not_known_yet_is_removed_when_the_creation_is_cancelled(
    laptop: Laptop,
) -> None:
    laptop.sim.timing.bucket_ready = 0.8
    ctx = laptop.ctx
    timer = threading.Timer(0.2, ctx.cancel)
    laptop.sim.watch(lambda call: timer.start() if call.name == "s3:CreateBucket" else None)
    with pytest.raises(Cancelled, match="nothing was left"):
        laptop.create(ctx=ctx)
    timer.join()
    assert laptop.sim.inventory() == []


def test_every_operation_may_be_throttled(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_TRIES", 8)
    monkeypatch.setattr("botocore.endpoint.time", types.SimpleNamespace(sleep=lambda _: None))
    for verb in (laptop.create, laptop.status, laptop.stop, laptop.start, laptop.delete):
        for name in set(laptop.calls_of(verb)):
            laptop.sim.throttle(name, times=2)
        if verb == laptop.create:
            laptop.delete()
            verb()
        elif verb != laptop.delete:
            verb()
        laptop.sim.heal()
    assert laptop.sim.inventory() == []


def test_throttling_without_end_is_worth_another_try(laptop: Laptop) -> None:
    laptop.sim.throttle("ec2:*", times=99)
    with pytest.raises(Transient, match="Request limit exceeded"):
        laptop.create()


def test_two_creations_at_a_time_make_one_task(laptop: Laptop) -> None:
    failed: list[BaseException] = []

    def create() -> None:
        try:
            laptop.create()
        except BaseException as error:
            failed.append(error)

    for _ in range(3):
        threads = [threading.Thread(target=create) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert laptop.has_all()
        laptop.delete()
        assert laptop.sim.inventory() == []


def test_a_group_that_is_being_deleted_is_waited_for(laptop: Laptop, user: User) -> None:
    laptop.create()
    laptop.sim.timing.deletion = 0.5
    user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=NAME, ForceDelete=True)
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_group_that_another_command_deletes_meanwhile_is_no_error(
    laptop: Laptop, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there when `delete` looks, and gone when its machines are to be stopped."""
    laptop.create()
    looked = AwsScaler.read

    def read(scaler: AwsScaler, ctx: Context) -> bool:
        monkeypatch.setattr(AwsScaler, "read", looked)
        found = looked(scaler, ctx)
        user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=NAME, ForceDelete=True)
        laptop.sim.wait(
            lambda: not any(line.startswith("group") for line in laptop.sim.inventory())
        )
        return found

    monkeypatch.setattr(AwsScaler, "read", read)
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_group_that_is_being_deleted_makes_room_for_a_new_one(laptop: Laptop, user: User) -> None:
    laptop.create()
    laptop.sim.timing.deletion = 0.5
    user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=NAME, ForceDelete=True)
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_is_emptied_of_versions_markers_and_uploads(laptop: Laptop, user: User) -> None:
    laptop.create()
    user.s3.put_bucket_versioning(Bucket=NAME, VersioningConfiguration={"Status": "Enabled"})
    for _ in range(2):
        user.s3.put_object(Bucket=NAME, Key="twice", Body=b"")
    user.s3.delete_object(Bucket=NAME, Key="twice")
    for number in range(3):
        user.s3.create_multipart_upload(Bucket=NAME, Key=f"unfinished-{number}")
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_with_many_objects_is_emptied_page_by_page(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.create()
    monkeypatch.setattr(vm_store, "PATIENCE", 0.0)  # which is not for emptying
    for number in range(1100):
        backends.s3().put_object(NAME, f"many/{number}", b"")  # a call for each takes long
    calls = laptop.calls_of(laptop.delete)
    assert calls.count("s3:DeleteObjects") == 2
    assert calls.count("s3:DeleteBucket") == 1
    assert laptop.sim.inventory() == []


def test_an_object_that_may_not_be_removed_is_told(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.create()
    refusal = {"Key": "a", "Code": "AccessDenied", "Message": "Access Denied"}
    real = account.Account.call

    def call(self: Any, what: str, service: str, region: str, name: str, **given: Any) -> Any:
        if name == "delete_objects":
            return {"Errors": [refusal]}
        return real(self, what, service, region, name, **given)

    with monkeypatch.context() as patched:
        patched.setattr(account.Account, "call", call)
        with pytest.raises(AuthError, match="Could not delete a"):
            laptop.delete()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_security_group_in_use_goes_with_the_last_machine(laptop: Laptop, user: User) -> None:
    laptop.create()
    [group] = user.ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [NAME]}])[
        "SecurityGroups"
    ]
    [subnet, *_] = user.ec2.describe_subnets()["Subnets"]
    interface = user.ec2.create_network_interface(
        SubnetId=subnet["SubnetId"], Groups=[group["GroupId"]]
    )["NetworkInterface"]["NetworkInterfaceId"]

    def let_go() -> None:
        until(lambda: "ec2:DeleteSecurityGroup" in [call.name for call in laptop.sim.calls])
        user.ec2.delete_network_interface(NetworkInterfaceId=interface)

    other = threading.Thread(target=let_go)
    other.start()
    laptop.delete()
    other.join()
    names = [call.name for call in laptop.sim.calls]
    assert names.count("ec2:DeleteSecurityGroup") > 1
    assert laptop.sim.inventory() == []


def test_somebody_elses_bucket_is_a_conflict_and_nothing_is_made(laptop: Laptop) -> None:
    laptop.sim.foreign_bucket(NAME)
    with pytest.raises(Conflict, match=f"Bucket {NAME} belongs to another account") as caught:
        laptop.create()
    assert "Choose another name" in caught.value.hint
    assert laptop.sim.inventory() == []


def test_a_bucket_that_somebody_else_makes_meanwhile_is_a_conflict(laptop: Laptop) -> None:
    laptop.sim.fail("s3:CreateBucket", code="BucketAlreadyExists", status=409)
    with pytest.raises(Conflict) as caught:
        laptop.create()
    assert "choose another name" in caught.value.hint
    assert laptop.sim.inventory() == []


def test_somebody_elses_security_group_of_the_same_name_is_left_alone(
    laptop: Laptop, user: User
) -> None:
    vpc = user.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    theirs = user.ec2.create_security_group(GroupName=NAME, Description="theirs", VpcId=vpc)
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    [found] = user.ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [NAME]}])[
        "SecurityGroups"
    ]
    assert found["GroupId"] == theirs["GroupId"]
    assert found["IpPermissions"] == []


def test_somebody_elses_security_group_in_our_network_is_a_conflict(
    laptop: Laptop, user: User
) -> None:
    user.ec2.create_security_group(GroupName=NAME, Description="theirs")
    with pytest.raises(Conflict, match=NAME):
        laptop.create()
    assert [line for line in laptop.sim.inventory() if "security group" in line]


def test_a_task_in_the_users_bucket_is_deleted_without_the_rest_of_it(
    laptop: Laptop, user: User
) -> None:
    user.make_bucket("users-own")
    user.s3.put_object(Bucket="users-own", Key="precious", Body=b"")
    before = laptop.sim.inventory()
    for container in ("users-own", "users-own/some/folder"):
        laptop.create(storage=Storage(container=container))
        laptop.delete()
        assert laptop.sim.inventory() == before


@pytest.mark.parametrize(
    "operation",
    [
        *("s3:PutObject", "iam:PutRolePolicy", "ec2:ImportKeyPair", "ec2:CreateLaunchTemplate"),
        *("autoscaling:CreateAutoScalingGroup", "ec2:AuthorizeSecurityGroupIngress"),
    ],
)
def test_a_half_made_task_in_the_users_bucket_is_found_and_deleted(
    laptop: Laptop, user: User, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.make_bucket("users-own")
    before = laptop.sim.inventory()
    laptop.sim.fail(operation, code="AccessDenied", status=403)
    with monkeypatch.context() as patched:
        patched.setattr("sojourn.engine.creation._remove", lambda *_: [])  # as if it was killed
        with pytest.raises(SojournError):
            laptop.create(storage=Storage(container="users-own"))
    assert laptop.exists()
    laptop.delete()
    assert laptop.sim.inventory() == before


@pytest.mark.parametrize(
    "operation",
    [
        *("ec2:DeleteKeyPair", "iam:DeleteRole", "s3:DeleteObjects", "ec2:DeleteSecurityGroup"),
        *("autoscaling:DeleteAutoScalingGroup", "ec2:DeleteLaunchTemplate"),
    ],
)
def test_a_half_deleted_task_in_the_users_bucket_is_found_and_deleted(
    laptop: Laptop, user: User, operation: str
) -> None:
    user.make_bucket("users-own")
    before = laptop.sim.inventory()
    laptop.create(storage=Storage(container="users-own"))
    laptop.sim.fail(operation, code="AccessDenied", status=403)
    with pytest.raises(SojournError):
        laptop.delete()
    laptop.delete()
    assert laptop.sim.inventory() == before


def test_any_resource_may_be_gone_when_a_task_is_deleted(laptop: Laptop) -> None:
    count = 0
    while True:
        laptop.create()
        made = laptop.cloud.resources(ID, None)
        if count == len(made):
            break
        made[-1].delete(laptop.ctx)  # machines need all the others
        made[count].delete(laptop.ctx)
        laptop.delete()
        assert laptop.sim.inventory() == [], made[count].title
        count += 1
    laptop.delete()


@pytest.mark.parametrize("verb", ["create", "status", "stop", "delete"])
@pytest.mark.parametrize("code", ["ExpiredToken", "RequestExpired", "InvalidClientTokenId"])
def test_an_expired_login_is_told_with_what_to_do(laptop: Laptop, verb: str, code: str) -> None:
    laptop.sim.fail("*", code=code, status=400, times=999)
    with pytest.raises(AuthError) as caught:
        getattr(laptop, verb)()
    assert "aws sso login" in caught.value.hint


def test_a_creation_that_was_broken_off_is_told_by_all_verbs(laptop: Laptop) -> None:
    laptop.sim.fail("ec2:ImportKeyPair", code="AccessDenied", status=403)
    laptop.sim.fail("s3:ListObjectsV2", code="AccessDenied", status=403)
    with pytest.raises(SojournError, match="Another command may be creating the same task"):
        laptop.create()
    laptop.sim.heal()
    handle = api.get(str(laptop.id))
    assert handle.status() == INCOMPLETE
    assert handle.machines() == handle.events() == []
    with pytest.raises(NotFound, match=r"Could not start .*: creation did not finish"):
        handle.start()
    handle.stop()
    handle.delete(fetch=False)
    assert laptop.sim.inventory() == []


def test_a_refused_creation_changes_nothing_of_the_task_that_is_there(laptop: Laptop) -> None:
    laptop.create(tags={"team": "ml"})
    with pytest.raises(Conflict, match="a different task with this name already exists"):
        laptop.create(tags={"team": "other"})
    marks = backends.s3().get_bucket_tagging(NAME)["Tags"]
    assert {"Key": "team", "Value": "ml"} in marks
    laptop.delete()
    assert laptop.sim.inventory() == []
