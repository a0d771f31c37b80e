"""Calls, commands and ports all take the same way to the API server: a proxy counts."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load
from sojourn.kube.websocket import execute, forward
from tests.support.tls import server_context
from tests.unit.clouds.k8s.server import Authority, Proxy

_NAMES = ("127.0.0.1", "localhost", "0.0.0.0")
_DONE = b'\3{"metadata":{},"status":"Success"}'


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def port(tmp_path: Path, authority: Authority) -> Iterator[int]:
    """Of an API server that answers calls, and ends commands at once."""
    certificate, key = authority.issue("server", *_NAMES)
    (tmp_path / "server.pem").write_bytes(certificate + key)

    def answered(_: ServerConnection, request: Request) -> Response | None:
        if "Upgrade" in request.headers:
            return None
        body = json.dumps({"metadata": {"name": "pod"}}).encode()
        headers = Headers({"Content-Length": str(len(body)), "Content-Type": "application/json"})
        return Response(200, "OK", headers, body)

    def handled(connection: ServerConnection) -> None:
        try:
            connection.send(_DONE)
        except ConnectionClosed:
            return

    with serve(
        handled,
        "127.0.0.1",
        0,
        ssl=server_context(tmp_path / "server.pem"),
        subprotocols=["v5.channel.k8s.io", "v4.channel.k8s.io"],  # type: ignore[list-item]
        process_request=answered,
        compression=None,
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield int(server.socket.getsockname()[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    made = Proxy()
    monkeypatch.setenv("HTTPS_PROXY", made.url)
    yield made
    made.close()


def _api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Authority, at: str) -> Api:
    ca = base64.b64encode(authority.pem).decode()
    cluster = {"server": f"https://{at}", "certificate-authority-data": ca}
    login = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": "secret"}}],
    }
    (tmp_path / "config").write_text(json.dumps(login))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    return Api(load, patience=1.0)


def _all_ways(api: Api) -> None:
    api.get("Pod", "pod")
    process = execute(api, "pod", "main", ["true"])
    assert process.wait() == 0
    process.close()
    forward(api, "pod", 80).close()
    api._client.close()


@pytest.mark.parametrize(
    ("host", "spared"),
    [
        ("127.0.0.1", ""),
        ("localhost", ""),
        ("0.0.0.0", "0.0.0.0"),
        ("0.0.0.0", "10.0.0.0/8, 0.0.0.0/8"),
        ("0.0.0.0", "*"),
    ],
)
def test_no_connection_by_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    authority: Authority,
    port: int,
    proxy: Proxy,
    host: str,
    spared: str,
) -> None:
    monkeypatch.setenv("NO_PROXY", spared)
    _all_ways(_api(monkeypatch, tmp_path, authority, f"{host}:{port}"))
    assert proxy.asked == []


def test_every_connection_by_the_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Authority, port: int, proxy: Proxy
) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost, 127.0.0.0/8, 10.0.0.0/8")
    at = f"0.0.0.0:{port}"
    _all_ways(_api(monkeypatch, tmp_path, authority, at))
    assert proxy.asked == [at] * 3
