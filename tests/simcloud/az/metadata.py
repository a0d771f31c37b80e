"""The metadata service of an instance, as its machine sees it at 169.254.169.254.

What the instance is does not belong here, see `instances`; nor whom its tokens let in, see `gate`.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import format_datetime
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl

from tests.simcloud.az.entra import ARM_AUDIENCES, STORAGE_AUDIENCE
from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.state import Resource
from tests.simcloud.machines.serving import Request, Response

ADDRESS = "169.254.169.254"
PORT = 80
_INSTANCE = ("2019-06-01", "2020-09-01", "2021-02-01", "2021-12-13", "2023-07-01")
_EVENTS = ("2019-01-01", "2019-08-01", "2020-07-01")
_IDENTITY = ("2018-02-01", "2019-08-01")


class Metadata:
    """Answers of one instance."""

    def __init__(self, instance: Instance, parts: Parts) -> None:
        self._instance = instance
        self._parts = parts
        self._tokens: dict[tuple[str, str], tuple[str, float]] = {}
        self._first_asked: float | None = None  # for events
        self._recent: list[float] = []  # when it was asked in the last second
        self._seen: tuple[int, str] = (1, "")  # the number of the events' document, and itself

    def answer(self, request: Request) -> Response:
        path, _, query = request.path.partition("?")
        given = dict(parse_qsl(query, keep_blank_values=True))
        if request.headers.get("metadata", "").lower() != "true":
            return _error(400, "Bad request. Required metadata header not specified")
        if "x-forwarded-for" in request.headers:
            return _error(400, "Bad request. X-Forwarded-For is not allowed")
        with self._parts.changed:
            if self._too_many():
                return _error(429, "Too many requests")
            if path.startswith("/metadata/instance"):
                return _checked(given, _INSTANCE) or self._about(path, given)
            if path == "/metadata/scheduledevents":
                return _checked(given, _EVENTS) or self._events(request)
            if path == "/metadata/identity/oauth2/token":
                return _checked(given, _IDENTITY) or self._token(given)
        return _error(404, "Not found")

    def _too_many(self) -> bool:
        most, now = self._parts.timing.metadata_rate, monotonic()
        self._recent = [*(each for each in self._recent if each > now - 1), now]
        return bool(most) and len(self._recent) > most

    # About itself

    def _about(self, path: str, given: dict[str, str]) -> Response:
        found: Any = {"compute": self._compute(), "network": self._network()}
        for part in path.removeprefix("/metadata/instance").strip("/").split("/"):
            if not part:
                continue
            if isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            elif isinstance(found, dict) and part in found:
                found = found[part]
            else:
                return _error(404, "Not found")
        if given.get("format") == "text":
            if isinstance(found, (dict, list)):
                keys = found if isinstance(found, dict) else range(len(found))
                found = "\n".join(str(each) for each in keys)
            return Response(200, str(found).encode(), {"Content-Type": "text/plain"})
        if not isinstance(found, (dict, list)):
            return _error(400, "Bad request. A leaf needs format=text")
        return _json(200, found)

    def _compute(self) -> dict[str, Any]:
        instance, profile = self._instance, self._instance.profile
        image = profile["storageProfile"]["imageReference"]
        tags = instance.set.resource.tags
        user_data = profile.get("userData") or ""
        return {
            "azEnvironment": "AzurePublicCloud",
            "customData": "",  # is given to the machine at its first boot only
            "evictionPolicy": profile.get("evictionPolicy", ""),
            "location": instance.set.resource.location,
            "name": instance.name,
            "offer": image.get("offer", ""),
            "osType": "Linux",
            "priority": profile.get("priority", ""),
            "provider": "Microsoft.Compute",
            "publisher": image.get("publisher", ""),
            "resourceGroupName": instance.set.resource.id.split("/")[4],
            "resourceId": instance.id,
            "sku": image.get("sku", ""),
            "subscriptionId": self._parts.subscription,
            "tags": ";".join(f"{name}:{value}" for name, value in tags.items()),
            "tagsList": [{"name": name, "value": value} for name, value in tags.items()],
            "userData": user_data if _is_base64(user_data) else "",
            "version": image.get("version", ""),
            "vmId": instance.vm_id,
            "vmScaleSetName": instance.set.resource.name,
            "vmSize": instance.size,
            "zone": "",
        }

    def _network(self) -> dict[str, Any]:
        _, own = self._instance.place
        ipv4 = {
            "ipAddress": [{"privateIpAddress": own, "publicIpAddress": ""}],
            "subnet": [{"address": "10.0.0.0", "prefix": "16"}],
        }
        card = {"ipv4": ipv4, "ipv6": {"ipAddress": []}, "macAddress": "000D3AF806EC"}
        return {"interface": [card]}

    # What is going to happen

    def _events(self, request: Request) -> Response:
        """Of all instances of the scale set: a machine has to look for its own name."""
        if request.method == "POST":
            return self._approve(request)
        now = self._parts.clock.now()
        self._first_asked = self._first_asked or now
        told = now >= self._first_asked + self._parts.timing.events_ready
        there = [each for each in self._instance.set.instances if each.event and told]
        events = [self._event(each) for each in there]
        text = json.dumps(events)
        if text != self._seen[1]:
            self._seen = (self._seen[0] + 1, text)
        return _json(200, {"DocumentIncarnation": self._seen[0], "Events": events})

    def _event(self, instance: Instance) -> dict[str, Any]:
        event = instance.event
        assert event
        when = datetime.fromtimestamp(event.not_before, timezone.utc)
        return {
            "EventId": event.id,
            "EventStatus": "Started" if event.started else "Scheduled",
            "EventType": event.kind,
            "ResourceType": "VirtualMachine",
            "Resources": [instance.name],
            "NotBefore": "" if event.started else format_datetime(when, usegmt=True),
            "Description": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }

    def _approve(self, request: Request) -> Response:
        try:
            asked = [each["EventId"] for each in json.loads(request.body)["StartRequests"]]
        except (ValueError, KeyError, TypeError):
            return _error(400, "Bad request. The body has to have StartRequests")
        for each in list(self._instance.set.instances):
            if each.event and each.event.id in asked:
                each.set.begin(each, each.event)
        return Response(200)

    # Tokens of its identity

    def _token(self, given: dict[str, str]) -> Response:
        since = self._instance.made.timestamp()
        if self._parts.clock.now() < since + self._parts.timing.identity_ready:
            return _error(410, "Gone. The service is being updated")
        identity = self._identity(given)
        if isinstance(identity, Response):
            return identity
        audience = given.get("resource", "").rstrip("/")
        if audience not in (*ARM_AUDIENCES, STORAGE_AUDIENCE):
            return _refused("invalid_resource", f"The resource {audience} was not found.")
        principal = identity.inner.principal
        lasts, now = self._parts.timing.identity_token, time.time()
        key = (principal.object_id, audience)
        token, end = self._tokens.get(key, ("", 0.0))
        begun = end - lasts
        if end - now < lasts / 2 or begun < self._parts.directory.valid_since:
            token = self._parts.directory.issue(principal, audience, lasts)
            end = now + lasts
            self._tokens[key] = (token, end)
        said = {
            "access_token": token,
            "client_id": principal.client_id,
            "expires_in": str(int(end - now)),
            "expires_on": str(int(end)),
            "ext_expires_in": str(int(end - now)),
            "not_before": str(int(now)),
            "resource": given["resource"],
            "token_type": "Bearer",
        }
        return _json(200, said)

    def _identity(self, given: dict[str, str]) -> Resource | Response:
        known = self._instance.set.resource.content.get("identity") or {}
        ids = known.get("userAssignedIdentities") or {}
        there = [found for each in ids if (found := self._parts.resources.find(each))]
        asked: dict[str, Callable[[Resource], str]] = {
            "client_id": lambda each: each.properties["clientId"],
            "object_id": lambda each: each.properties["principalId"],
            "msi_res_id": lambda each: each.id,
        }
        for name, value in asked.items():
            if name in given:
                there = [e for e in there if value(e).lower() == given[name].lower()]
        if not there:
            return _refused("invalid_request", "Identity not found")
        if len(there) > 1:
            text = "Multiple user assigned identities exist, please specify the clientId"
            return _refused("invalid_request", text)
        return there[0]


def _checked(given: dict[str, str], known: tuple[str, ...]) -> Response | None:
    version = given.get("api-version")
    if version in known:
        return None
    what = "was not specified in the request" if not version else "is not supported"
    newest = list(reversed(known))[:3]
    return _json(400, {"error": f"Bad request. api-version {what}", "newest-versions": newest})


def _json(status: int, content: Any) -> Response:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    return Response(status, json.dumps(content).encode(), headers)


def _error(status: int, text: str) -> Response:
    return _json(status, {"error": text})


def _refused(code: str, text: str) -> Response:
    return _json(400, {"error": code, "error_description": text})


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
