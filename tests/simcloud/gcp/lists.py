"""Lists of Compute Engine, in pages."""

from __future__ import annotations

import base64
from typing import Any

from tests.simcloud.gcp import filters
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.store import link
from tests.simcloud.gcp.wire import GCPError

_MOST = 500


def paged(call: Call, kind: str, records: list[dict[str, Any]], path: str) -> dict[str, Any]:
    """The answer to a call for a list."""
    found, more = page(call, filters.selected(call.asked("filter"), records))
    answer: dict[str, Any] = {"kind": kind, "id": path, "selfLink": link(path), **more}
    return {**answer, "items": found} if found else answer


def page(call: Call, found: list[Any]) -> tuple[list[Any], dict[str, str]]:
    """One page, and what the answer says of the next."""
    if call.asked("orderBy") not in ("", "name", "creationTimestamp desc"):
        message = f"Invalid value for field 'orderBy': '{call.asked('orderBy')}'."
        raise GCPError("invalid", message, 400)
    size = call.asked_number("maxResults", _MOST)
    if not 0 <= size <= _MOST:
        message = f"Invalid value for field 'maxResults': '{size}'. Values must be from 0 to 500."
        raise GCPError("invalid", message, 400)
    start = int(base64.b64decode(call.asked("pageToken")).decode() or 0)
    end = start + size
    more = {"nextPageToken": base64.b64encode(str(end).encode()).decode()}
    return found[start:end], more if end < len(found) else {}
