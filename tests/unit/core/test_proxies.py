"""Which proxy leads to a server: the rules of Go's programs, kubectl among them."""

from __future__ import annotations

import os

import pytest

from sojourn.core.proxies import proxy_for as by_environment


def proxy_for(server: str) -> str:
    return by_environment(server, os.environ)


@pytest.fixture(autouse=True)
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")


def test_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for("https://example.com") == "http://proxy:3128"
    assert proxy_for("http://example.com") == ""
    monkeypatch.setenv("http_proxy", "other:80")
    assert proxy_for("http://example.com") == "http://other:80"
    monkeypatch.delenv("HTTPS_PROXY")
    assert proxy_for("https://example.com") == ""
    monkeypatch.setenv("https_proxy", "socks5://other")
    assert proxy_for("https://example.com") == "socks5://other"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_this_computer_needs_none(host: str) -> None:
    assert proxy_for(f"https://{host}:6443") == ""


@pytest.mark.parametrize(
    ("spared", "server", "direct"),
    [
        ("*", "https://example.com", True),
        ("example.com", "https://example.com", True),
        ("EXAMPLE.com", "https://k.example.com", True),
        ("example.com", "https://notexample.com", False),
        (".example.com", "https://example.com", False),
        (".example.com", "https://k.example.com", True),
        ("*.example.com", "https://k.example.com", True),
        ("x, example.com ,", "https://example.com", True),
        ("example.com:443", "https://example.com", True),
        ("example.com:6443", "https://example.com", False),
        ("10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3:6443", False),
        ("10.0.0.0/8", "https://example.com", False),
        ("10.1.2.3", "https://10.1.2.3:6443", True),
        ("10.1.2.3:6443", "https://10.1.2.3:6443", True),
        ("1.2.3", "https://10.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("10.0.0.0/x", "https://10.0.0.0", False),
    ],
)
def test_servers_that_are_spared(
    monkeypatch: pytest.MonkeyPatch, spared: str, server: str, direct: bool
) -> None:
    monkeypatch.setenv("NO_PROXY", spared)
    assert (proxy_for(server) == "") is direct
