"""The way to a forge: proxies, and authorities that are not known everywhere.

Without `configure`, it is that of the usual variables: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE.
"""

from __future__ import annotations

import base64
import os
import ssl
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sojourn.core.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CERTIFICATES", "configure", "opened", "trust", "usual_authorities"]

CERTIFICATES = "certificates"  # the name of them among what a runner's machine gets

_BUNDLES = (  # where systems have the authorities that all programs trust
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
_SCHEMES = ("http", "https")
_FOR_ANYBODY = ("Accept", "User-agent")  # headers, as the library spells them
_openers: list[urllib.request.OpenerDirector] = []  # the one in use, if it was configured
_trusted: list[str] = []  # certificates, as PEM


def configure(environment: Mapping[str, str], certificates: str = "") -> None:
    """Go by the proxies of these variables from now on, and trust these authorities, too.

    On a machine, the variables are those of its script, not ours. `certificates`: as PEM.
    """
    trusted = ssl.create_default_context()
    if certificates:
        trusted.load_verify_locations(cadata=certificates)
    handlers = (_Proxies(environment), urllib.request.HTTPSHandler(context=trusted))
    _openers[:] = [urllib.request.build_opener(_Redirects(), *handlers)]


def trust(environment: Mapping[str, str], certificates: str) -> None:
    """The same, and go on trusting those of earlier calls: one program may launch runners of
    several forges."""
    if certificates not in _trusted:
        _trusted.append(certificates)
    configure(environment, "\n".join(_trusted))


def usual_authorities() -> str:
    """The authorities that programs here trust, as PEM; unknown: empty."""
    for each in _BUNDLES:
        with suppress(OSError):
            return Path(each).read_text()
    return ""


def opened(request: urllib.request.Request, within: float) -> Any:
    """The answer to a request."""
    opener = _openers[0] if _openers else _usual()
    return opener.open(request, timeout=within)


def _usual() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects(), _Proxies(os.environ))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A token is for the host that it was meant for, wherever that sends us."""

    def redirect_request(
        self, req: urllib.request.Request, *args: Any
    ) -> urllib.request.Request | None:
        found = super().redirect_request(req, *args)
        if found and (found.type, found.host) != (req.type, req.host):
            found.headers = {k: v for k, v in found.headers.items() if k in _FOR_ANYBODY}
        return found


class _Proxies(urllib.request.ProxyHandler):
    """By our own decision: the library's knows no ranges of addresses, and asks the variables of
    this process whom to spare."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(dict.fromkeys(_SCHEMES, ""))
        self._environment = environment

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> None:
        """Let others open it, by way of the proxy if there is one."""
        found = urlsplit(proxy_for(f"{type}://{req.host}", self._environment))
        if not found.hostname:
            return
        login, _, address = found.netloc.rpartition("@")
        if login:
            plain = unquote(login).encode()
            req.add_unredirected_header(
                "Proxy-authorization", f"Basic {base64.b64encode(plain).decode()}"
            )
        req.set_proxy(address, "http")
