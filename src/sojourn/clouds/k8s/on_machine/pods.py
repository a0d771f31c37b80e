"""What the cluster tells of pods, for those who make them and those who run in them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

__all__ = ["stale"]

_LATE = timedelta(seconds=30)  # for a node to tell that a pod is gone, after its grace


def stale(pod: dict[str, Any]) -> bool:
    """Whether a pod should be gone by now, and its node does not tell."""
    until = pod["metadata"].get("deletionTimestamp")
    if not until:
        return False
    return _unheard(pod) or datetime.now(timezone.utc) - _time(until) > _LATE


def _unheard(pod: dict[str, Any]) -> bool:
    """Whether its node is not heard of: then the cluster says that it is not ready, but not why."""
    ready = [item for item in pod["status"].get("conditions") or () if item["type"] == "Ready"]
    return any(item["status"] != "True" and not item.get("reason") for item in ready)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
