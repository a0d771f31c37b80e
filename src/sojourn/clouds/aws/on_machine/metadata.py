"""The metadata service of the machine, by its second version, which needs a token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

__all__ = ["credentials", "get", "token"]

_ADDRESS = "http://169.254.169.254/latest"
_TOKEN_SECONDS = "21600"
_WITHIN = 5.0
# No proxy is asked: the service answers this machine alone.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def token() -> str:
    """A token for `get`."""
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": _TOKEN_SECONDS}
    return _read(urllib.request.Request(_ADDRESS + "/api/token", method="PUT", headers=headers))


def get(path: str, token: str) -> str | None:
    """A value; None if there is none."""
    headers = {"X-aws-ec2-metadata-token": token}
    try:
        return _read(urllib.request.Request(_ADDRESS + path, headers=headers))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def credentials() -> dict[str, Any]:
    """The keys of this machine's role, good for some hours."""
    opened = token()
    base = "/meta-data/iam/security-credentials/"
    role = get(base, opened)
    keys = get(base + role.split()[0], opened) if role else None
    if not keys:
        raise OSError("this machine has no role yet")
    found: dict[str, Any] = json.loads(keys)
    if found.get("Code") != "Success":  # while a role is new, there may be an answer without keys
        raise OSError(f"the role of this machine has no keys yet: {found.get('Code')}")
    return found


def _read(request: urllib.request.Request) -> str:
    with _DIRECT.open(request, timeout=_WITHIN) as answer:
        text: str = answer.read().decode()
    return text
