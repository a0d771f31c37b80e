"""What Terraform tells with -json, and at which line of which resource."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.terraform.project import Project, Ran


@dataclass(frozen=True)
class Told:
    """A diagnostic. `block` is the head of the resource it is in, `line` what it points at."""

    severity: str
    message: str
    block: str
    line: str


def validated(project: Project, code: int = 0) -> list[Told]:
    """What `terraform validate` says."""
    ran = project.run("validate", "-json", code=code)
    return [_told(item) for item in json.loads(ran.out)["diagnostics"]]


def told(ran: Ran) -> list[Told]:
    """What `plan -json` or `apply -json` said."""
    events = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
    return [_told(event["diagnostic"]) for event in events if "diagnostic" in event]


def _told(item: dict[str, Any]) -> Told:
    snippet = item.get("snippet") or {}
    return Told(
        item["severity"],
        f"{item['summary']} {item.get('detail', '')}".strip(),
        snippet.get("context") or "",
        snippet.get("code", "").strip(),
    )
