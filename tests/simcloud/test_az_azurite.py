"""Our blob service says the same to obstore as Azurite does. For whoever has Azurite."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import AzureStore

from tests.simcloud.az_user import User
from tests.support.waiting import until

_WHERE = os.environ.get("SOJOURN_TEST_AZURITE", "")
_KEY = base64.b64encode(b"k" * 64).decode()
_VERSION = "2023-11-03"

pytestmark = pytest.mark.skipif(
    not _WHERE, reason="set SOJOURN_TEST_AZURITE to the folder of npm's azurite@3.35.0"
)


@pytest.fixture
def azurite() -> Iterator[AzureStore]:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    program = Path(_WHERE, "dist", "src", "blob", "main.js")
    options = ("--skipApiVersionCheck", "--silent", "--disableTelemetry", "--inMemoryPersistence")
    server = subprocess.Popen(
        ["node", program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options],
        env={**os.environ, "AZURITE_ACCOUNTS": f"anaccount:{_KEY}"},
        stdout=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}/anaccount"
    try:
        until(lambda: _make_box(endpoint))
        yield AzureStore(
            "box",
            account_name="anaccount",
            account_key=_KEY,
            endpoint=endpoint,
            client_options={"allow_http": True},
        )
    finally:
        server.kill()
        server.wait()


def test_both_say_the_same(azurite: AzureStore, az_user: User) -> None:
    az_user.make_container(az_user.make_group())
    said = [_everything(store) for store in (azurite, az_user.store())]
    assert said[0] == said[1]


def _everything(store: AzureStore) -> list[str]:
    """What comes of many things that can be done with blobs, a line each."""
    first = obstore.put(store, "a b/ä", b"0123")
    wrong, right = '"0x1"', first["e_tag"] or ""
    things: list[Callable[[], Any]] = [
        lambda: obstore.put(store, "a b/ä", b"1", mode="create"),
        lambda: obstore.put(store, "a b/ä", b"1", mode={"e_tag": wrong}),
        lambda: bytes(obstore.get(store, "a b/ä").bytes()),
        lambda: obstore.get(store, "missing"),
        lambda: obstore.head(store, "missing"),
        lambda: [each["path"] for each in obstore.list(store).collect()],
        lambda: [each["e_tag"] == right.strip('"') for each in obstore.list(store).collect()],
        lambda: [each["path"] for each in obstore.list(store, offset="a b/ä").collect()],
        lambda: obstore.list_with_delimiter(store)["common_prefixes"],
        lambda: obstore.copy(store, "a b/ä", "c"),
        lambda: obstore.copy(store, "a b/ä", "c", overwrite=False),
        lambda: obstore.copy(store, "missing", "d"),
        lambda: obstore.delete(store, ["c", "missing"]),
        lambda: obstore.delete(store, "missing"),
        lambda: obstore.get(store, "a b/ä", options={"if_none_match": right}),
        lambda: obstore.get(store, "a b/ä", options={"if_match": wrong}),
        lambda: bytes(obstore.get_range(store, "a b/ä", start=1, end=3)),
        lambda: obstore.get_range(store, "a b/ä", start=10, end=12),
        lambda: obstore.put(store, "m", b"x" * 6_000_000, use_multipart=True) is not None,
        lambda: obstore.head(store, "m")["size"],
        lambda: obstore.put(store, "a b/ä", b"2", mode={"e_tag": right}) is not None,
        lambda: bytes(obstore.get(store, "a b/ä").bytes()),
    ]
    return [_outcome(each) for each in things]


def _outcome(do: Callable[[], Any]) -> str:
    try:
        return repr(do())
    except Exception as error:
        return type(error).__name__


def _make_box(endpoint: str) -> bool:
    date = formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:{_VERSION}"
    text = "PUT" + "\n" * 12 + f"{headers}\n/anaccount/anaccount/box\nrestype:container"
    made = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(made).decode()
    said = {
        "x-ms-date": date,
        "x-ms-version": _VERSION,
        "Authorization": f"SharedKey anaccount:{signature}",
    }
    try:
        answer = httpx.put(f"{endpoint}/box?restype=container", headers=said, trust_env=False)
    except httpx.TransportError:
        return False
    return answer.status_code == 201
