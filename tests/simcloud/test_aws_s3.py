"""Object storage in a simulated AWS account: buckets, and all that obstore needs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store

from sojourn.core.errors import Transient
from sojourn.storage.objects import ObstoreStore
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws_user import User, refused


def test_buckets_are_of_one_region_and_have_to_be_empty_to_go(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    refused("BucketAlreadyOwnedByYou", user.make_bucket)
    aws.foreign_bucket("of-others")
    refused("BucketAlreadyExists", user.make_bucket, name="of-others")
    refused("403", user.s3.head_bucket, Bucket="of-others")
    refused("IllegalLocationConstraintException", user.s3.create_bucket, Bucket="no-place")
    tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
    user.s3.put_bucket_tagging(Bucket=bucket, Tagging=tags)
    assert user.s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags["TagSet"]
    assert [b["Name"] for b in user.s3.list_buckets()["Buckets"]] == [bucket]
    user.s3.put_object(Bucket=bucket, Key="a", Body=b"")
    store = S3Store(
        bucket,
        endpoint=aws.endpoint,
        access_key_id=aws.environment()["AWS_ACCESS_KEY_ID"],
        secret_access_key=aws.environment()["AWS_SECRET_ACCESS_KEY"],
        region="eu-west-1",
        client_options={"allow_http": True},
    )
    with pytest.raises(Exception, match="expecting 'us-west-1'"):
        obstore.put(store, "b", b"")
    refused("BucketNotEmpty", user.s3.delete_bucket, Bucket=bucket)
    user.remove_bucket()
    refused("NoSuchBucket", user.s3.delete_bucket, Bucket=bucket)
    refused("404", user.s3.head_bucket, Bucket=bucket)
    assert aws.inventory() == []


def test_a_new_bucket_may_be_missing_for_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.bucket_ready = 3600
    bucket = user.make_bucket()
    refused("NoSuchBucket", user.s3.put_object, Bucket=bucket, Key="a", Body=b"")
    refused("404", user.s3.head_bucket, Bucket=bucket)
    aws.advance(3600)
    user.s3.put_object(Bucket=bucket, Key="a", Body=b"")


def test_the_name_of_a_deleted_bucket_is_free_after_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.bucket_gone = 3600
    user.make_bucket()
    user.remove_bucket()
    assert "conflicting" in refused("OperationAborted", user.make_bucket)
    aws.advance(3600)
    user.make_bucket()
    user.remove_bucket()


def test_versions_and_uploads_are_found_and_can_be_removed(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    where = {"Bucket": bucket}
    enabled = {"Status": "Enabled"}
    user.s3.put_bucket_versioning(**where, VersioningConfiguration=enabled)
    for body in (b"1", b"2"):
        user.s3.put_object(**where, Key="a", Body=body)
    user.s3.delete_object(**where, Key="a")
    user.s3.create_multipart_upload(**where, Key="b")
    assert aws.inventory() == [
        "bucket a-bucket",
        "delete marker a-bucket/a",
        "object a-bucket/a",
        "object a-bucket/a",
        "upload a-bucket/b",
    ]
    [upload] = user.s3.list_multipart_uploads(**where)["Uploads"]
    user.s3.abort_multipart_upload(**where, Key="b", UploadId=upload["UploadId"])
    listed = user.s3.list_object_versions(**where)
    for version in [*listed["Versions"], *listed["DeleteMarkers"]]:
        user.s3.delete_object(**where, Key="a", VersionId=version["VersionId"])
    user.s3.delete_bucket(**where)
    assert aws.inventory() == []


@pytest.fixture
def store(aws: SimAWS, user: User) -> S3Store:
    environment = aws.environment()
    return S3Store(
        user.make_bucket(),
        endpoint=aws.endpoint,
        access_key_id=environment["AWS_ACCESS_KEY_ID"],
        secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region=user.region,
        client_options={"allow_http": True},
    )


def test_one_of_many_creators_wins(store: S3Store) -> None:
    def create(path: str, number: int) -> bool:
        try:
            obstore.put(store, path, str(number).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        for turn in range(5):
            path = f"race/{turn}"
            won = list(pool.map(lambda number, path=path: create(path, number), range(16)))
            assert won.count(True) == 1
            assert obstore.get(store, path).bytes() == str(won.index(True)).encode()


def test_one_of_many_changes_of_the_same_version_wins(store: S3Store) -> None:
    first = obstore.put(store, "a", b"first")

    def change(number: int) -> bool:
        try:
            obstore.put(store, "a", str(number).encode(), mode={"e_tag": first["e_tag"]})
        except PreconditionError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(change, range(16))).count(True) == 1


def test_obstore_finds_all_that_it_needs(store: S3Store) -> None:
    content = bytes(range(256)) * 4
    for number in range(30):
        obstore.put(store, f"many/{number:02} ü+%", content)
    listed = [
        meta["path"] for page in obstore.list(store, "many/", offset="many/19 ü+%") for meta in page
    ]
    assert sorted(listed) == [f"many/{number:02} ü+%" for number in range(20, 30)]
    assert obstore.get_range(store, listed[0], start=10, end=20).to_bytes() == content[10:20]
    two = obstore.get_ranges(store, listed[0], starts=[0, 1000], ends=[4, 1010])
    assert [bytes(each) for each in two] == [content[:4], content[1000:1010]]
    assert obstore.head(store, listed[0])["size"] == len(content)
    obstore.copy(store, listed[0], "copy")
    assert obstore.get(store, "copy").bytes() == content
    obstore.delete(store, [f"many/{number:02} ü+%" for number in range(30)])
    assert [meta["path"] for page in obstore.list(store) for meta in page] == ["copy"]
    big = content * 12 * 1024
    obstore.put(store, "big", big, use_multipart=True, chunk_size=5 << 20)
    assert obstore.get(store, "big").bytes() == big
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "missing")


@pytest.fixture
def conflicting(aws: SimAWS, store: S3Store) -> SimAWS:
    """S3 says so while another write or deletion of the same object is under way."""
    aws.fail("s3:PutObject", code="ConditionalRequestConflict", status=409, times=2)
    return aws


def test_a_creation_that_meets_another_change_is_tried_again(
    conflicting: SimAWS, store: S3Store
) -> None:
    assert ObstoreStore(store).put_new("a", b"one")
    assert obstore.get(store, "a").bytes() == b"one"


def test_a_creation_that_meets_another_one_is_lost_if_that_came_first(
    conflicting: SimAWS, store: S3Store
) -> None:
    def write(call: Call) -> None:
        if call.operation == "GetObject":
            backends.s3().put_object("a-bucket", "a", b"theirs")

    conflicting.watch(write)
    assert not ObstoreStore(store).put_new("a", b"ours")


def test_a_creation_that_never_gets_through_is_worth_another_try(
    conflicting: SimAWS, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.storage.objects._CONFLICT_WAITS", (0.0, 0.0))
    with pytest.raises(Transient, match="a in the store kept changing"):
        ObstoreStore(store).put_new("a", b"one")
