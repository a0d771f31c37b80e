"""obstore's exceptions stop at the store: each has a name of ours, in bounded time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError, NotFound, QuotaError, SojournError, Transient
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.disks import small_disk
from tests.support.seaweed import Seaweed
from tests.support.waiting import patience

CALLS: dict[str, Callable[[Store], Any]] = {
    "get": lambda store: store.get("a"),
    "get_ranges": lambda store: store.get_ranges("a", [(0, 1)]),
    "put": lambda store: store.put("a", b"x"),
    "put_new": lambda store: store.put_new("a", b"x"),
    "copy": lambda store: store.copy("a", "b"),
    "list": lambda store: store.list("a"),
    "head": lambda store: store.head("a"),
    "delete": lambda store: store.delete(["a"]),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize(
    "keys",
    [{"access_key_id": "nobody"}, {"secret_access_key": "wrong"}],
    ids=["unknown key", "wrong secret"],
)
def test_wrong_keys_are_an_auth_error(
    seaweed: Seaweed, call: Callable[[Store], Any], keys: dict[str, str]
) -> None:
    address = seaweed.address()
    open_store(address).put("a", b"x")
    with pytest.raises(AuthError) as caught:
        call(open_store(StoreAddress(address.url, {**address.options, **keys})))
    assert "credentials" in caught.value.hint
    assert "wrong" not in str(caught.value)


@every_call
def test_a_server_that_is_not_there_is_transient(
    seaweed: Seaweed, call: Callable[[Store], Any]
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        options = _short(seaweed) | {"endpoint": f"http://127.0.0.1:{held.getsockname()[1]}"}
        store = open_store(StoreAddress("s3://some-bucket", options))
        with _bounded(10), pytest.raises(Transient) as caught:
            call(store)
    assert caught.value.retry_after > 0


@every_call
def test_a_server_that_does_not_answer_is_transient(
    seaweed: Seaweed, call: Callable[[Store], Any]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        options = _short(seaweed) | {"endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        store = open_store(StoreAddress("s3://some-bucket", options))
        with _bounded(10), pytest.raises(Transient):
            call(store)


def test_options_are_merged_into_the_defaults(seaweed: Seaweed) -> None:
    address = seaweed.address(retry_config={"max_retries": 0})
    assert open_store(address).list("") == []


def test_a_bucket_that_is_not_there_is_not_found(seaweed: Seaweed) -> None:
    store = open_store(StoreAddress("s3://no-such-bucket", seaweed.options()))
    for name in ("get", "list"):
        with pytest.raises(NotFound):
            CALLS[name](store)
    assert store.head("a") is None


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="missing"):
        open_store(StoreAddress(f"file://{tmp_path}/missing"))


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SojournError, match="file"):
        open_store(StoreAddress(f"file://{tmp_path}/file"))


@pytest.mark.parametrize("name", ["with space", "ünï", "100%", "a#b", "a?b", "%20"])
def test_folders_of_any_name_are_opened_as_they_are_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    open_store(StoreAddress(f"file://{tmp_path}/{name}")).put("a", b"x")
    assert (tmp_path / name / "a").read_bytes() == b"x"


def test_a_folder_that_goes_away_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    store = open_store(StoreAddress(f"file://{tmp_path}/store"))
    (tmp_path / "store").rmdir()
    with pytest.raises(NotFound):
        store.get("a")
    assert store.list("a") == []


def test_a_full_disk_is_a_quota_error_and_leaves_no_half_object(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = open_store(StoreAddress(f"file://{disk}"))
        for put in (store.put, store.put_new):
            with pytest.raises(QuotaError):
                put("a/b", bytes(2 << 20))
        assert store.list("") == []
        store.put("a/b", b"small")


def test_an_unknown_kind_of_store_is_an_error_of_ours() -> None:
    with pytest.raises(SojournError):
        open_store(StoreAddress("gopher://x"))


def test_an_address_does_not_show_its_secrets() -> None:
    assert "secret" not in repr(StoreAddress("s3://x", {"secret_access_key": "secret"}))


def _short(seaweed: Seaweed) -> dict[str, Any]:
    return seaweed.options() | {
        "client_options": {"allow_http": True, "timeout": "300ms", "connect_timeout": "300ms"},
        "retry_config": {"max_retries": 1, "retry_timeout": timedelta(seconds=1)},
    }


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < patience(seconds)
