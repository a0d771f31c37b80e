"""Blobs of the simulated Azure as obstore sees them: conditions, lists, rights, signatures."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import obstore
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore

from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import BLOB_CONTRIBUTOR, User

_DATA = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"


@pytest.fixture
def box(az_user: User) -> AzureStore:
    """A container, with the rights of a user who may do everything."""
    az_user.make_container(az_user.make_group())
    return az_user.store()


def _bytes(store: AzureStore, key: str) -> bytes:
    return bytes(obstore.get(store, key).bytes())


def test_blobs_are_stored_read_and_deleted(box: AzureStore) -> None:
    put = obstore.put(box, "a folder/ä b", b"0123456789")
    assert put["e_tag"]
    assert _bytes(box, "a folder/ä b") == b"0123456789"
    assert bytes(obstore.get_range(box, "a folder/ä b", start=2, end=5)) == b"234"
    found = obstore.head(box, "a folder/ä b")
    assert (found["size"], found["e_tag"]) == (10, put["e_tag"])
    obstore.put(box, "a folder/empty", b"")
    assert _bytes(box, "a folder/empty") == b""
    obstore.copy(box, "a folder/ä b", "copy")
    assert _bytes(box, "copy") == b"0123456789"
    obstore.delete(box, "copy")
    with pytest.raises(FileNotFoundError):
        obstore.get(box, "copy")
    with pytest.raises(FileNotFoundError):
        obstore.head(box, "copy")


def test_a_blob_is_made_or_changed_only_if(box: AzureStore) -> None:
    first = obstore.put(box, "key", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(box, "key", b"2", mode="create")
    obstore.put(box, "key", b"2", mode={"e_tag": first["e_tag"]})
    with pytest.raises(PreconditionError):
        obstore.put(box, "key", b"3", mode={"e_tag": first["e_tag"]})
    assert _bytes(box, "key") == b"2"
    obstore.put(box, "other", b"")
    with pytest.raises(AlreadyExistsError):
        obstore.copy(box, "key", "other", overwrite=False)


def test_of_many_who_make_a_blob_one_does(box: AzureStore) -> None:
    start = threading.Barrier(8)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            obstore.put(box, "key", str(number).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


def test_lists_are_in_order_and_in_pages(az: SimAzure, box: AzureStore) -> None:
    az.blobs.page = 3
    names = [f"a/{number:02}" for number in range(7)] + ["a/deep/one", "b&<c>"]
    for name in reversed(names):
        obstore.put(box, name, b"x")
    found = [each["path"] for each in obstore.list(box).collect()]
    assert found == sorted(names)
    assert [each["path"] for each in obstore.list(box, "a/deep").collect()] == ["a/deep/one"]
    level = obstore.list_with_delimiter(box, "a")
    assert level["common_prefixes"] == ["a/deep"]
    assert len(level["objects"]) == 7
    after = obstore.list(box, offset="a/04").collect()
    assert [each["path"] for each in after] == ["a/05", "a/06", "a/deep/one", "b&<c>"]


def test_large_blobs_come_in_blocks(box: AzureStore) -> None:
    data = bytes(range(256)) * 65536
    obstore.put(box, "large", data, use_multipart=True, chunk_size=5 * 1024 * 1024)
    assert _bytes(box, "large") == data


def test_many_blobs_are_deleted_at_once(az: SimAzure, box: AzureStore) -> None:
    for number in range(5):
        obstore.put(box, str(number), b"")
    az.calls.clear()
    obstore.delete(box, [str(number) for number in range(4)])
    assert [each["path"] for each in obstore.list(box).collect()] == ["4"]
    assert [call.name for call in az.calls] == ["blobs.SubmitBatch", "blobs.ListBlobs"]


def test_deleting_what_is_not_there_is_an_error(box: AzureStore) -> None:
    """Unlike on other clouds, and in a batch, too, whose other blobs are gone then."""
    with pytest.raises(FileNotFoundError):
        obstore.delete(box, "missing")
    obstore.put(box, "there", b"")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        obstore.delete(box, ["missing", "there"])
    assert obstore.list(box).collect() == []


def test_entity_tags_in_lists_have_no_quotes(box: AzureStore) -> None:
    made = obstore.put(box, "key", b"")
    [found] = obstore.list(box).collect()
    assert made["e_tag"] == f'"{found["e_tag"]}"'
    with pytest.raises(NotModifiedError):
        obstore.get(box, "key", options={"if_none_match": made["e_tag"] or ""})
    assert _bytes(box, "key") == b""


def test_keys_open_everything_unless_the_account_forbids_it(az_user: User, box: AzureStore) -> None:
    obstore.put(box, "a b/ä", b"1")
    account = f"{az_user.make_group()}/providers/Microsoft.Storage/storageAccounts/anaccount"
    keys = az_user.call("POST", f"{account}/listKeys").json()["keys"]
    by_key = AzureStore("box", account_name="anaccount", account_key=keys[1]["value"])
    assert _bytes(by_key, "a b/ä") == b"1"
    obstore.put(by_key, "b", b"2", use_multipart=True, chunk_size=5 * 1024 * 1024)
    assert len(obstore.list(by_key, "a b").collect()) == 1
    wrong = AzureStore("box", account_name="anaccount", account_key="d3Jvbmc=")
    with pytest.raises(PermissionDeniedError):
        obstore.get(wrong, "b")
    az_user.call("PATCH", account, {"properties": {"allowSharedKeyAccess": False}})
    with pytest.raises(PermissionDeniedError):
        obstore.get(by_key, "b")
    assert _bytes(box, "b") == b"2"


def test_signed_addresses_work_for_a_while(az: SimAzure, az_user: User, box: AzureStore) -> None:
    obstore.put(box, "key", b"content")
    account = f"{az_user.make_group()}/providers/Microsoft.Storage/storageAccounts/anaccount"
    keys = az_user.call("POST", f"{account}/listKeys").json()["keys"]
    by_key = AzureStore("box", account_name="anaccount", account_key=keys[0]["value"])
    urls = [obstore.sign(store, "GET", "key", timedelta(seconds=60)) for store in (by_key, box)]
    for url in urls:
        assert az_user.http.get(url).content == b"content"
        assert az_user.http.get(url.replace("/key?", "/other?")).status_code == 403
        assert az_user.http.put(url, content=b"", headers=_PUT).status_code == 403
    az.advance(61)
    for url in urls:
        assert az_user.http.get(url).status_code == 403


_PUT = {"x-ms-blob-type": "BlockBlob"}


def test_an_identity_may_what_its_role_says_and_only_there(az: SimAzure, az_user: User) -> None:
    group = az_user.make_group()
    mine = az_user.make_container(group, name="mine")
    az_user.make_container(group, name="theirs")
    other = User(az.user({"actions": ["Microsoft.Resources/*/read"]}))
    oid = az.principal(other.environment["AZURE_CLIENT_ID"])
    store, foreign = other.store(container="mine"), other.store(container="theirs")
    with pytest.raises(PermissionDeniedError):
        obstore.put(store, "key", b"")
    az_user.assign(mine, BLOB_CONTRIBUTOR, oid)
    obstore.put(store, "key", b"")
    assert len(obstore.list(store).collect()) == 1
    obstore.delete(store, "key")
    for attempt in (
        lambda: obstore.put(foreign, "key", b""),
        lambda: obstore.get(foreign, "key"),
        lambda: obstore.list(foreign).collect(),
        lambda: obstore.delete(foreign, ["key"]),
    ):
        with pytest.raises((PermissionDeniedError, GenericError)):
            attempt()
    other.close()


def test_a_role_counts_after_a_while(az: SimAzure, az_user: User) -> None:
    mine = az_user.make_container(az_user.make_group())
    az.timing.role_ready = az.timing.role_gone = 300
    other = User(az.user({"actions": []}))
    made = az_user.assign(
        mine, BLOB_CONTRIBUTOR, az.principal(other.environment["AZURE_CLIENT_ID"])
    )
    store = other.store()
    with pytest.raises(PermissionDeniedError):
        obstore.put(store, "key", b"")
    az.advance(301)
    obstore.put(store, "key", b"")
    az_user.delete(made["id"])
    obstore.put(store, "key", b"")
    az.advance(301)
    with pytest.raises(PermissionDeniedError):
        obstore.put(store, "key", b"")
    other.close()


def test_tokens_are_for_storage_and_run_out(az: SimAzure, az_user: User, box: AzureStore) -> None:
    obstore.put(box, "key", b"")
    wrong = az_user.credential.get_token("https://management.azure.com/.default").token
    for token in (wrong, "made.up.token"):
        store = AzureStore("box", account_name="anaccount", bearer_token=token)
        with pytest.raises(UnauthenticatedError):
            obstore.get(store, "key")
    az.expire_tokens()
    with pytest.raises(UnauthenticatedError):
        obstore.get(box, "key")


def test_faults_of_blobs(az: SimAzure, box: AzureStore) -> None:
    obstore.put(box, "key", b"1")
    az.throttle("blobs.GetBlob", times=2)
    az.fail("blobs.GetBlob", nth=3, cut=True)
    assert _bytes(box, "key") == b"1"  # obstore tries again
    assert [call.error for call in az.calls if call.name == "blobs.GetBlob"][:2] == [
        "ServerBusy"
    ] * 2
    az.fail("blobs.PutBlob", after=True, code="ServerBusy", status=503)
    obstore.put(box, "key", b"2")
    assert _bytes(box, "key") == b"2"


def test_accounts_that_are_not_there_have_no_address(az_user: User, box: AzureStore) -> None:
    store = az_user.store(account="nosuchaccount")
    with pytest.raises(httpx.ProxyError):
        az_user.http.get("https://nosuchaccount.blob.core.windows.net/box/key")
    missing = az_user.store(container="missing")
    with pytest.raises(FileNotFoundError):
        obstore.get(missing, "key")
    assert store is not None


def test_the_name_of_a_new_account_resolves_after_a_while(az: SimAzure, az_user: User) -> None:
    az.timing.account_ready = 60
    az_user.make_container(az_user.make_group())
    url = "https://anaccount.blob.core.windows.net/box/key"
    with pytest.raises(httpx.ProxyError):
        az_user.http.get(url)
    az.advance(61)
    assert az_user.http.get(url).status_code == 401


def test_another_process_needs_only_the_variables(az_user: User, box: AzureStore) -> None:
    """A laptop has a proxy and an authority to trust, and asks for the addresses of Azure."""
    script = (
        "from azure.identity import DefaultAzureCredential\n"
        "import obstore, httpx\n"
        "from obstore.store import AzureStore\n"
        "c = DefaultAzureCredential()\n"
        "t = c.get_token('https://storage.azure.com/.default').token\n"
        "s = AzureStore('box', account_name='anaccount', bearer_token=t)\n"
        "obstore.put(s, 'from-another', b'x')\n"
        "t = c.get_token('https://management.azure.com/.default').token\n"
        "h = {'Authorization': 'Bearer ' + t}\n"
        "u = 'https://management.azure.com/subscriptions/%s?api-version=2022-12-01'\n"
        "import os\n"
        "print(httpx.get(u % os.environ['AZURE_SUBSCRIPTION_ID'], headers=h).json()['state'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": "/usr/bin:/bin", **az_user.environment},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "Enabled\n", done.stderr
    assert _bytes(box, "from-another") == b"x"
