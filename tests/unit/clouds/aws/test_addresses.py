"""Which hosts are asked for what is in a bucket: certificates know no bucket with a dot."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.locations import Location, Locations
from sojourn.clouds.aws.machines import Offers
from sojourn.clouds.aws.store_address import address, options_for_machines, url_of
from sojourn.clouds.aws.task_context import AwsContext
from sojourn.clouds.aws.template import LaunchTemplate
from sojourn.clouds.vm.paths import BOOT
from sojourn.core.errors import SojournError
from sojourn.core.ids import TaskId
from sojourn.storage.store import StoreAddress, open_store

ID = TaskId.for_name("addresses", {})


def place(bucket: str) -> Location:
    return Location("us-west-1", bucket, "a/b", "eu-north-1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The hosts that anybody wants to talk to; a proxy that lets nobody through tells."""
    found: list[str] = []
    proxy = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                client, _ = proxy.accept()
            except OSError:
                return
            with client:
                found.append(client.recv(4096).split()[1].decode())
                client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=listen)
    thread.start()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield found
    proxy.shutdown(socket.SHUT_RDWR)
    proxy.close()
    thread.join()


@pytest.mark.slow  # both stores try again, and again
def test_the_store_of_laptop_and_machines_has_the_bucket_in_the_path(asked: list[str]) -> None:
    where = place("my.data")
    without_keys = {
        **options_for_machines(Account(), where),
        "skip_signature": True,
    }
    for store in (StoreAddress(url_of(where), without_keys), address(Account(), where)):
        with pytest.raises(SojournError):
            open_store(store).get("file")
    with pytest.raises(SojournError):
        Account(tries=1).call("bucket", "s3", "eu-north-1", "head_bucket", Bucket="my.data")
    assert set(asked) == {"s3.eu-north-1.amazonaws.com:443"}


@pytest.mark.parametrize(
    ("bucket", "url"),
    [
        ("my.data", "https://s3.eu-north-1.amazonaws.com/my.data/a/b/boot/"),
        ("mydata", "https://mydata.s3.eu-north-1.amazonaws.com/a/b/boot/"),
    ],
)
def test_machines_fetch_the_agent_from_a_host_that_has_a_certificate(
    asked: list[str], bucket: str, url: str
) -> None:
    account = Account()
    places = Locations(account)
    places._known[ID] = place(bucket)
    site = AwsContext(account, places, Offers(account), ID, None)
    assert LaunchTemplate(site)._url(BOOT) == url
