"""What is marked at a group, which has no labels: in the metadata of machines to come."""

from __future__ import annotations

from typing import Any

__all__ = ["MARKED", "RANKS", "STOPPED", "marks_in", "patch_of"]

MARKED = "sojourn-marked"  # "yes": machines of this group tell how ranks ended
STOPPED = "sojourn-stopped"  # "yes": somebody stopped it, and nobody started it since
RANKS = "sojourn-ranks"  # how many machines it may have


def marks_in(group: Any) -> dict[str, str]:
    """All marks of a group, as the API tells of it."""
    found = group.get("allInstancesConfig", {}).get("properties", {}).get("metadata", {})
    return {str(key): str(value) for key, value in found.items()}


def patch_of(marks: dict[str, str], fingerprint: str | None = None) -> dict[str, Any]:
    """What to send so that a group has these beside its others."""
    body: dict[str, Any] = {"allInstancesConfig": {"properties": {"metadata": marks}}}
    return {**body, "fingerprint": fingerprint} if fingerprint else body
