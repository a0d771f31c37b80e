from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from sojourn.core.context import Context
from sojourn.forges import network
from sojourn.forges.http import Http


@contextmanager
def _host(elsewhere: str = "") -> Iterator[str]:
    """Tells which headers came, or sends whoever asks to another host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if elsewhere else 200)
            if elsewhere:
                self.send_header("Location", elsewhere)
            self.end_headers()
            self.wfile.write(json.dumps(dict(self.headers)).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(Handler) as url:
        yield url


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_token_does_not_follow_to_another_host() -> None:
    headers = {"Authorization": "Bearer secret", "PRIVATE-TOKEN": "secret", "Accept": "text/json"}
    with _host() as other, _host(f"{other}/there") as first:
        assert "secret" in str(Http(other, headers).call(Context(), "GET", "/").json)
        came = Http(first, headers).call(Context(), "GET", "/").json
    assert "secret" not in str(came)
    assert came["Accept"] == "text/json"


class _Counting(BaseHTTPRequestHandler):
    """A proxy that answers by itself; `asked` has the addresses."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"by": "proxy"}')

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize(
    ("host", "spared", "direct"),
    [
        ("127.0.0.1", "", True),
        ("localhost", "", True),
        ("0.0.0.0", "10.0.0.0/8,0.0.0.0/8", True),
        ("0.0.0.0", "10.0.0.0/8", False),
    ],
)
def test_who_is_reached_by_a_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str, spared: str, direct: bool, configured: bool
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(_Counting, "asked", [])
    with _host() as forge, _serving(_Counting) as proxy:
        variables = {"HTTP_PROXY": proxy, "NO_PROXY": spared}
        if configured:  # the process's own do not count then
            monkeypatch.setenv("NO_PROXY", "" if direct else "*")
            network.configure(variables)
        else:
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
        address = forge.replace("127.0.0.1", host)
        try:
            Http(address, {}).call(Context(), "GET", "/x")
        finally:
            network._openers.clear()
    assert _Counting.asked == ([] if direct else [f"{address}/x"])
