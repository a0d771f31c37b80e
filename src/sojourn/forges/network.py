"""The way to a forge: proxies, and authorities that are not known everywhere.

Without `configure`, it is that of the usual variables: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE.
"""

from __future__ import annotations

import ssl
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CERTIFICATES", "configure", "opened", "trust"]

CERTIFICATES = "certificates"  # the name of them among what a runner's machine gets

_PROXY = "_proxy"
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
    handlers = (_Proxies(_proxies(environment)), urllib.request.HTTPSHandler(context=trusted))
    _openers[:] = [urllib.request.build_opener(_Redirects(), *handlers)]


def trust(environment: Mapping[str, str], certificates: str) -> None:
    """The same, and go on trusting those of earlier calls: one program may launch runners of
    several forges."""
    if certificates not in _trusted:
        _trusted.append(certificates)
    configure(environment, "\n".join(_trusted))


def opened(request: urllib.request.Request, within: float) -> Any:
    """The answer to a request."""
    opener = _openers[0] if _openers else urllib.request.build_opener(_Redirects())
    return opener.open(request, timeout=within)


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """By scheme; `no` has those that are reached without one. Lower-case names win."""
    names = sorted((name for name in environment if name.lower().endswith(_PROXY)), key=str.lower)
    names.sort(key=str.islower)
    return {name.lower().removesuffix(_PROXY): environment[name] for name in names}


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
    """The library's own asks the variables of this process whom to spare."""

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:
        spared = getattr(urllib.request, "proxy_bypass_environment")  # noqa: B009 -- not in stubs
        if req.host and spared(req.host, self.proxies):  # type: ignore[attr-defined]
            return None
        return super().proxy_open(req, proxy, type)
