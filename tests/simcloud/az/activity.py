"""The activity log: why something failed that nobody was waiting for."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from typing import Any

from tests.simcloud.az.parts import Context, Parts
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

_KNOWN = re.compile(
    r"eventTimestamp (ge|le) '([^']+)'|(resourceGroupName|resourceUri) eq '([^']+)'"
)


def note(parts: Parts, resource: Resource, error: ArmError) -> None:
    """Write down that a scale set could not be changed as it was to be."""
    now = parts.clock.today().isoformat()
    operation = "Microsoft.Compute/virtualMachineScaleSets/write"
    own_id = str(uuid.uuid4())
    parts.events.append(
        {
            "id": f"{resource.id}/events/{own_id}/ticks/0",
            "eventDataId": own_id,
            "correlationId": str(uuid.uuid4()),
            "operationId": str(uuid.uuid4()),
            "resourceId": resource.id,
            "resourceGroupName": resource.id.split("/")[4],
            "subscriptionId": parts.subscription,
            "operationName": {"value": operation, "localizedValue": operation},
            "category": {"value": "Administrative", "localizedValue": "Administrative"},
            "status": {"value": "Failed", "localizedValue": "Failed"},
            "subStatus": {"value": "", "localizedValue": ""},
            "level": "Error",
            "eventTimestamp": now,
            "submissionTimestamp": now,
            "properties": {
                "statusCode": "Conflict",
                "statusMessage": f'{{"error":{{"code":"{error.code}",'
                f'"message":"{error.message.encode("unicode_escape").decode()}"}}}}',
            },
        }
    )


def tell(parts: Parts, context: Context) -> Answer:
    """The newest first; a filter with a beginning is required."""
    text = context.request.parameters.get("$filter", "")
    found: dict[str, str] = {}
    for part in re.split(r"\s+and\s+", text.strip()):
        term = _KNOWN.fullmatch(part.strip())
        if term is None:
            raise ArmError(400, "BadRequest", f"The filter '{text}' is not supported.")
        found[term[1] or term[3]] = term[2] or term[4]
    if "ge" not in found:
        text = "The filter needs the beginning: eventTimestamp ge '...'."
        raise ArmError(400, "BadRequest", text)
    return reply(200, {"value": [e for e in reversed(parts.events) if _fits(e, found)]})


def _fits(event: dict[str, Any], asked: dict[str, str]) -> bool:
    when = _moment(event["eventTimestamp"])
    group, own_id = asked.get("resourceGroupName"), asked.get("resourceUri")
    return (
        _moment(asked["ge"]) <= when
        and ("le" not in asked or when <= _moment(asked["le"]))
        and (group is None or group.lower() == event["resourceGroupName"].lower())
        and (own_id is None or own_id.lower() == event["resourceId"].lower())
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
