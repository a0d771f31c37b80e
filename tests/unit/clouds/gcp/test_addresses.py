"""Where the store of a task is, as laptops and as machines see it."""

from __future__ import annotations

import pytest

from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.locations import Location
from sojourn.clouds.gcp.store_address import address, for_machines, url_in
from sojourn.clouds.vm.paths import BOOT
from sojourn.core.errors import SojournError
from sojourn.storage.store import open_store
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User

_ENDPOINT = "SOJOURN_GCP_ENDPOINT"
WHERE = Location("us-west1-b", "my.data", "a/b")


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one; nobody is asked for anything."""
    monkeypatch.delenv(_ENDPOINT, raising=False)


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize(
    ("where", "url"),
    [
        (WHERE, "gs://my.data/a/b"),
        (Location("us-west1-b", "tpi-a"), "gs://tpi-a"),
    ],
)
def test_machines_need_no_more_than_the_url(where: Location, url: str) -> None:
    found = for_machines(Account(), where)
    assert (found.url, found.options) == (url, {})


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize(
    ("where", "url"),
    [
        (WHERE, "https://storage.googleapis.com/my.data/a/b/boot/"),
        (Location("us-west1-b", "tpi-a"), "https://storage.googleapis.com/tpi-a/boot/"),
        (
            Location("us-west1-b", "tpi-a", "k=1+2@x:y"),
            "https://storage.googleapis.com/tpi-a/k%3D1%2B2%40x%3Ay/boot/",
        ),
    ],
)
def test_the_bucket_is_in_the_path_for_certificates_know_none_with_a_dot(
    where: Location, url: str
) -> None:
    assert url_in(Account(), where, BOOT) == url


@pytest.mark.parametrize(
    ("endpoint", "more"),
    [
        ("https://proxy.example/", {}),
        ("http://127.0.0.1:1", {"client_options": {"allow_http": True}}),
    ],
)
def test_another_endpoint_has_the_host_in_the_path(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, more: dict[str, object]
) -> None:
    monkeypatch.setenv(_ENDPOINT, endpoint)
    base = f"{endpoint.rstrip('/')}/storage.googleapis.com"
    assert for_machines(Account(), WHERE).options == {"base_url": base, **more}
    assert url_in(Account(), WHERE, BOOT) == f"{base}/my.data/a/b/boot/"


def test_an_endpoint_that_is_no_url_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_ENDPOINT, "proxy.example")
    with pytest.raises(SojournError, match="Invalid endpoint") as caught:
        for_machines(Account(), WHERE)
    assert _ENDPOINT in str(caught.value.hint)


def test_no_secret_of_the_laptop_is_told_to_machines(untouched: SimGCP) -> None:
    account = Account()
    assert "credential_provider" not in for_machines(account, WHERE).options
    provider = address(account, WHERE).options["credential_provider"]
    assert provider()["token"] not in repr(address(account, WHERE))


def test_the_laptop_reads_what_is_there(project: SimGCP, user: User) -> None:
    user.make_bucket("my.data")
    user.store("my.data").put("a/b/file", b"content")
    assert bytes(open_store(address(Account(), WHERE)).get("file")) == b"content"
