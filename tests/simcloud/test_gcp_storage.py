"""Cloud Storage of a simulated Google Cloud project, with object_store's client and by hand."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import obstore
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import GCSStore

from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.crc32c import crc32c
from tests.simcloud.gcp.project import PROJECT
from tests.simcloud.gcp_user import GoogleError, User, refused, store

_B = "storage/v1/b"


@pytest.fixture
def bucket(googler: User) -> Iterator[GCSStore]:
    googler.make_bucket()
    yield googler.store()
    with suppress(GoogleError):
        googler.remove_bucket()


def test_creating_and_updating(bucket: GCSStore) -> None:
    made = obstore.put(bucket, "a/b c", b"one", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(bucket, "a/b c", b"two", mode="create")
    version: Any = {"version": made["version"], "e_tag": made["e_tag"]}
    newer = obstore.put(bucket, "a/b c", b"two", mode=version)
    with pytest.raises(PreconditionError):
        obstore.put(bucket, "a/b c", b"three", mode=version)
    assert int(newer["version"] or 0) > int(made["version"] or 0)
    assert bytes(obstore.get(bucket, "a/b c").bytes()) == b"two"
    with pytest.raises(FileNotFoundError):
        obstore.get(bucket, "other")
    obstore.delete(bucket, "a/b c")
    with pytest.raises(FileNotFoundError):
        obstore.head(bucket, "a/b c")


def test_one_of_many_creates(bucket: GCSStore) -> None:
    def create(number: int) -> bool:
        with suppress(AlreadyExistsError):
            obstore.put(bucket, "x", str(number).encode(), mode="create")
            return True
        return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(create, range(16))) == 1


def test_ranges(bucket: GCSStore) -> None:
    obstore.put(bucket, "x", b"0123456789")
    assert bytes(obstore.get_range(bucket, "x", start=2, end=5)) == b"234"
    ranges = obstore.get_ranges(bucket, "x", starts=[0, 8], ends=[1, 10])
    assert [bytes(each) for each in ranges] == [b"0", b"89"]
    end = obstore.get(bucket, "x", options={"range": {"suffix": 3}})
    assert bytes(end.bytes()) == b"789"
    with pytest.raises(BaseError):
        obstore.get_range(bucket, "x", start=20, end=30)


def test_attributes_and_conditions_of_reads(bucket: GCSStore) -> None:
    attributes = {"Content-Type": "text/plain", "by": "a-test"}
    made = obstore.put(bucket, "x", b"text", attributes=attributes)
    got = obstore.get(bucket, "x")
    assert got.attributes["Content-Type"] == "text/plain"
    assert got.attributes["by"] == "a-test"
    assert got.meta["version"] == made["version"]
    obstore.get(bucket, "x", options={"if_match": made["e_tag"] or ""})
    with pytest.raises(PreconditionError):
        obstore.get(bucket, "x", options={"if_match": '"other"'})
    with pytest.raises(BaseError):
        obstore.get(bucket, "x", options={"if_none_match": made["e_tag"] or ""})


def test_lists(bucket: GCSStore) -> None:
    names = [f"{folder}/{number:04}" for folder in ("a", "b") for number in range(700)]
    for name in [*names, "top"]:
        obstore.put(bucket, name, b"")
    assert [each["path"] for each in obstore.list(bucket).collect()] == [*names, "top"]
    found = obstore.list(bucket, "b", offset="b/0500").collect()
    assert [each["path"] for each in found] == names[1201:]
    level = obstore.list_with_delimiter(bucket)
    assert level["common_prefixes"] == ["a", "b"]
    assert [each["path"] for each in level["objects"]] == ["top"]


def test_in_parts(gcp: SimGCP, bucket: GCSStore) -> None:
    data = bytes(range(256)) * 45000  # 11 MB
    obstore.put(bucket, "big", data, use_multipart=True, chunk_size=5 << 20)
    assert bytes(obstore.get(bucket, "big").bytes()) == data
    assert [call.name for call in gcp.calls].count("storage:xml.uploadPart") == 3
    with pytest.raises(BaseError, match="EntityTooSmall"):
        obstore.put(bucket, "small", data[: 3 << 20], use_multipart=True, chunk_size=1 << 20)
    assert [line for line in gcp.inventory() if "upload" in line] in ([], ["upload a-bucket/small"])


def test_copies(bucket: GCSStore) -> None:
    obstore.put(bucket, "from/a b", b"data")
    obstore.copy(bucket, "from/a b", "to")
    with pytest.raises(AlreadyExistsError):
        obstore.copy(bucket, "from/a b", "to", overwrite=False)
    obstore.rename(bucket, "to", "there")
    assert bytes(obstore.get(bucket, "there").bytes()) == b"data"
    with pytest.raises(FileNotFoundError):
        obstore.copy(bucket, "missing", "to")


def test_buckets(gcp: SimGCP, googler: User) -> None:
    for wrong in ("ab", "A-bucket", "goog-bucket", "my-google", "-bucket", "b" * 64):
        refused(400, "invalid", googler.make_bucket, wrong)
    made = googler.make_bucket(labels={"task": "one"})
    assert made["location"] == "US-WEST1"
    assert made["softDeletePolicy"]["retentionDurationSeconds"] == "0"
    assert made["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert "you already own it" in refused(409, "conflict", googler.make_bucket)
    gcp.foreign_bucket("taken")
    assert "not available" in refused(409, "conflict", googler.make_bucket, "taken")
    path = ("GET", "storage", f"{_B}/taken")
    refused(403, "forbidden", googler.call, *path)
    change = {"labels": {"task": None, "more": "yes"}}
    patched = googler.call("PATCH", "storage", f"{_B}/a-bucket", change)
    assert (patched["labels"], patched["metageneration"]) == ({"more": "yes"}, "2")
    bad = {"labels": {"Task": "one"}}
    refused(400, "invalid", googler.call, "PATCH", "storage", f"{_B}/a-bucket", bad)
    stranger = User(gcp.user([]))
    refused(404, "notFound", stranger.call, "GET", "storage", f"{_B}/nobodys")
    refused(403, "forbidden", stranger.call, "GET", "storage", f"{_B}/a-bucket")
    stranger.close()
    found = googler.call("GET", "storage", _B, project=PROJECT, prefix="a-")
    assert [each["name"] for each in found["items"]] == ["a-bucket"]
    obstore.put(googler.store(), "x", b"")
    delete = ("DELETE", "storage", f"{_B}/a-bucket")
    assert "is not empty" in refused(409, "conflict", googler.call, *delete)
    obstore.delete(googler.store(), "x")
    googler.call(*delete)
    refused(404, "notFound", googler.call, *delete)
    assert gcp.inventory() == []


def test_objects_that_are_kept_after_their_deletion(gcp: SimGCP, googler: User) -> None:
    googler.make_bucket(softDeletePolicy={"retentionDurationSeconds": "604800"})
    obstore.put(googler.store(), "x", b"1")
    obstore.delete(googler.store(), "x")
    assert gcp.inventory() == ["bucket a-bucket", "soft-deleted object a-bucket/x"]


def test_a_bucket_is_found_after_a_while(gcp: SimGCP, googler: User) -> None:
    gcp.timing.bucket_ready = 1000
    googler.make_bucket()
    refused(404, "notFound", googler.call, "GET", "storage", f"{_B}/a-bucket")
    gcp.advance(1000)
    googler.call("GET", "storage", f"{_B}/a-bucket")


def test_objects_in_json(gcp: SimGCP, googler: User, bucket: GCSStore) -> None:
    headers = {"Authorization": f"Bearer {googler.token()}", "Content-Type": "text/plain"}
    url = f"{gcp.endpoint}/storage.googleapis.com/upload/storage/v1/b/a-bucket/o"
    query = {"uploadType": "media", "name": "a/b", "ifGenerationMatch": "0"}
    with httpx.Client(headers=headers, trust_env=False) as client:
        made = client.post(url, params=query, content=b"hello")
        assert made.status_code == 200
        assert client.post(url, params=query, content=b"hello").status_code == 412
        wrong = {"Content-MD5": base64.b64encode(b"x" * 16).decode()}
        del query["ifGenerationMatch"]
        assert client.post(url, params=query, content=b"?", headers=wrong).status_code == 400
    record = made.json()
    assert record["md5Hash"] == base64.b64encode(hashlib.md5(b"hello").digest()).decode()
    assert record["crc32c"] == "mnG7TA=="
    assert googler.call("GET", "storage", f"{_B}/a-bucket/o/a%2Fb") == record
    found = googler.call("GET", "storage", f"{_B}/a-bucket/o", prefix="a/", delimiter="/")
    assert [each["name"] for each in found["items"]] == ["a/b"]
    one = f"{_B}/a-bucket/o/a%2Fb"
    refused(412, "conditionNotMet", googler.call, "DELETE", "storage", one, ifGenerationMatch=5)
    googler.call("DELETE", "storage", one, ifGenerationMatch=record["generation"])
    refused(404, "notFound", googler.call, "GET", "storage", one)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_rights_on_objects(gcp: SimGCP, googler: User, bucket: GCSStore) -> None:
    obstore.put(bucket, "mine/x", b"1")
    obstore.put(bucket, "other/x", b"1")
    email = googler.make_account()
    own = "projects/_/buckets/a-bucket/objects/mine/"
    policy = googler.call("GET", "storage", f"{_B}/a-bucket/iam", optionsRequestedPolicyVersion=3)
    binding = {
        "role": "roles/storage.objectUser",
        "members": [f"serviceAccount:{email}"],
        "condition": {
            "title": "mine",
            "expression": f"resource.name.startsWith('{own}') || "
            "(resource.type == 'storage.googleapis.com/Bucket' && api.getAttribute("
            "'storage.googleapis.com/objectListPrefix', '').startsWith('mine/'))",
        },
    }
    policy = {**policy, "version": 3, "bindings": [*policy["bindings"], binding]}
    googler.call("PUT", "storage", f"{_B}/a-bucket/iam", policy)
    refused(412, "conditionNotMet", googler.call, "PUT", "storage", f"{_B}/a-bucket/iam", policy)
    account = gcp.project.accounts.all[email]
    token, _ = gcp.project.accounts.make_token(
        account, ("https://www.googleapis.com/auth/devstorage.read_write",)
    )
    limited = store(gcp.endpoint, "a-bucket", token)
    obstore.put(limited, "mine/y", b"2")
    obstore.put(limited, "mine/y", b"3")
    assert len(obstore.list(limited, "mine").collect()) == 2
    for forbidden in (
        lambda: obstore.get(limited, "other/x"),
        lambda: obstore.put(limited, "other/y", b""),
        lambda: obstore.delete(limited, "other/x"),
        lambda: obstore.copy(limited, "other/x", "mine/z"),
    ):
        with pytest.raises(PermissionDeniedError):
            forbidden()
    with pytest.raises(BaseError, match=r"storage\.objects\.list"):
        obstore.list(limited).collect()
    with pytest.raises(BaseError):  # who may not list all must not learn what is not there
        obstore.get(limited, "mine/missing")


def test_conditions_need_uniform_access(googler: User) -> None:
    uneven = {"uniformBucketLevelAccess": {"enabled": False}}
    googler.make_bucket(iamConfiguration=uneven)
    policy: dict[str, Any] = {
        "version": 3,
        "bindings": [
            {
                "role": "roles/storage.objectUser",
                "members": ["serviceAccount:administrator@laptops.iam.gserviceaccount.com"],
                "condition": {"title": "x", "expression": "resource.name == 'x'"},
            }
        ],
    }
    refused(412, "invalid", googler.call, "PUT", "storage", f"{_B}/a-bucket/iam", policy)


def test_an_object_changes_once_a_second(gcp: SimGCP, googler: User, bucket: GCSStore) -> None:
    gcp.timing.object_rate = 1000.0
    obstore.put(bucket, "x", b"1")
    with pytest.raises(BaseError, match="rate limit"):
        obstore.put(bucket, "x", b"2")
    obstore.put(bucket, "y", b"2")
    gcp.advance(1000)
    obstore.put(bucket, "x", b"2")
    gcp.timing.object_rate = 0.0


_NAMES = st.sampled_from(["a", "a/b", "a/c", "a b", "b", "b/ü", "b/a/c", "c%2F"])
_DATA = st.binary(max_size=20)


class Model(RuleBasedStateMachine):
    """Random operations on a bucket and on a dictionary."""

    endpoint = ""
    token = ""

    def __init__(self) -> None:
        super().__init__()
        self.store = store(self.endpoint, "a-bucket", self.token)
        self.model: dict[str, bytes] = {}
        self.versions: dict[str, Any] = {}
        for each in obstore.list(self.store).collect():
            obstore.delete(self.store, each["path"])

    @rule(name=_NAMES, data=_DATA)
    def put(self, name: str, data: bytes) -> None:
        self.versions[name] = obstore.put(self.store, name, data)
        self.model[name] = data

    @rule(name=_NAMES, data=_DATA)
    def create(self, name: str, data: bytes) -> None:
        try:
            self.versions[name] = obstore.put(self.store, name, data, mode="create")
        except AlreadyExistsError:
            assert name in self.model
        else:
            assert name not in self.model
            self.model[name] = data

    @rule(name=_NAMES, other=_NAMES, data=_DATA)
    def update(self, name: str, other: str, data: bytes) -> None:
        """With the version of this or another object."""
        known = self.versions.get(other)
        if known is None:
            return
        mode: Any = {"version": known["version"], "e_tag": known["e_tag"]}
        fits = other == name and name in self.model
        try:
            self.versions[name] = obstore.put(self.store, name, data, mode=mode)
        except PreconditionError:
            assert not fits
        else:
            assert fits
            self.model[name] = data

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self.store, name)
        self.model.pop(name, None)

    @rule(name=_NAMES, other=_NAMES)
    def copy(self, name: str, other: str) -> None:
        if name == other:
            return
        try:
            obstore.copy(self.store, name, other)
        except FileNotFoundError:
            assert name not in self.model
        else:
            self.model[other] = self.model[name]
            self.versions[other] = obstore.head(self.store, other)

    @rule(name=_NAMES)
    def get(self, name: str) -> None:
        try:
            data = bytes(obstore.get(self.store, name).bytes())
        except FileNotFoundError:
            assert name not in self.model
        else:
            assert data == self.model[name]

    @rule(prefix=st.sampled_from(["", "a", "b", "b/a"]))
    def under(self, prefix: str) -> None:
        found = [each["path"] for each in obstore.list(self.store, prefix).collect()]
        start = f"{prefix}/" if prefix else ""
        wanted = [name for name in self.model if name.startswith(start)]
        assert found == sorted(wanted, key=str.encode)
        level = obstore.list_with_delimiter(self.store, prefix)
        rests = [name.removeprefix(start) for name in wanted]
        assert {each["path"] for each in level["objects"]} == {
            start + rest for rest in rests if "/" not in rest
        }
        assert set(level["common_prefixes"]) == {
            start + rest.partition("/")[0] for rest in rests if "/" in rest
        }

    @invariant()
    def same(self) -> None:
        found = {each["path"]: each["size"] for each in obstore.list(self.store).collect()}
        assert found == {name: len(data) for name, data in self.model.items()}


def test_any_operations_do_what_a_dictionary_does(googler: User, bucket: GCSStore) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Model.endpoint, Model.token = googler.endpoint, googler.token()
    run_state_machine_as_test(
        Model,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )
