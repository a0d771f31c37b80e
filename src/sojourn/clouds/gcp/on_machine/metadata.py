"""The metadata server of the machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

__all__ = ["authorized", "get"]

_ADDRESS = "http://metadata.google.internal/computeMetadata/v1/instance/"
_WITHIN = 5.0
# No proxy is asked: the service answers this machine alone.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(path: str) -> str:
    """A value of this instance; empty if there is none."""
    request = urllib.request.Request(_ADDRESS + path, headers={"Metadata-Flavor": "Google"})
    try:
        with _DIRECT.open(request, timeout=_WITHIN) as answer:
            text: str = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise
    return text


def authorized(
    method: str, url: str, body: bytes = b"", content_type: str = "application/json"
) -> urllib.request.Request:
    """A request with the token of this machine's account."""
    text = get("service-accounts/default/token")
    if not text:
        raise OSError("this machine has no service account yet")
    headers = {"Authorization": f"Bearer {json.loads(text)['access_token']}"}
    if body:
        headers["Content-Type"] = content_type
    return urllib.request.Request(url, data=body or None, headers=headers, method=method)
