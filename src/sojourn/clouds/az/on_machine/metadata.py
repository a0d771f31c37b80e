"""The metadata service of the machine: what it is, its tokens, what is about to happen to it."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from typing import Any

__all__ = ["about", "approve", "events", "token"]

_ADDRESS = "http://169.254.169.254/metadata"
_INSTANCE = "2021-02-01"  # versions
_IDENTITY = "2018-02-01"
_EVENTS = "2020-07-01"
_WITHIN = 5.0
_SPARE = 300.0  # seconds before its end in which a token is not used any more
_tokens: dict[tuple[str, str], tuple[str, float]] = {}


def about() -> dict[str, Any]:
    """What this machine is."""
    found: dict[str, Any] = _read(f"/instance/compute?api-version={_INSTANCE}")
    return found


def token(resource: str, identity: str) -> str:
    """A token of an identity that this machine has, by its id."""
    known, end = _tokens.get((resource, identity), ("", 0.0))
    if end - _SPARE > time.time():
        return known
    asked = {"api-version": _IDENTITY, "resource": resource, "msi_res_id": identity}
    answer = _read(f"/identity/oauth2/token?{urllib.parse.urlencode(asked)}")
    found = str(answer["access_token"])
    _tokens[resource, identity] = (found, float(answer["expires_on"]))
    return found


def events(name: str) -> list[dict[str, Any]]:
    """What is going to happen to the machine of this name; all of its scale set are told of."""
    found = _read(f"/scheduledevents?api-version={_EVENTS}")["Events"]
    return [each for each in found if name in each.get("Resources", ())]


def approve(event: str) -> None:
    """This event need not wait any longer."""
    body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
    _read(f"/scheduledevents?api-version={_EVENTS}", body)


def _read(path: str, body: bytes | None = None) -> Any:
    """No proxy is asked: the service answers this machine alone."""
    request = urllib.request.Request(_ADDRESS + path, data=body, headers={"Metadata": "true"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_WITHIN) as answer:
        text: bytes = answer.read()
    return json.loads(text) if text else None
