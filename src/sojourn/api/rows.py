"""What verbs return as the rows of the documented schema: for `--json`, and for any front end.

Events and errors are such rows by themselves, see their `to_dict`. Words for people do not belong
here.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sojourn.core.clock import seconds_between, utc_now
from sojourn.core.command import command_of

if TYPE_CHECKING:
    from sojourn.api.handle import Handle, Result
    from sojourn.api.machine import Machine
    from sojourn.core.interfaces import MadeImage
    from sojourn.core.runner import Runner
    from sojourn.core.status import Status
    from sojourn.engine.creation import Plan
    from sojourn.engine.ledger import Ending

__all__ = [
    "created",
    "deleted_task",
    "ended",
    "image",
    "machine",
    "plan",
    "runner",
    "status",
    "task",
]


def created(handle: Handle, **more: Any) -> dict[str, Any]:
    """A task that was created just now."""
    return {"type": "created", "id": handle.id} | more


def task(handle: Handle, now: Status) -> dict[str, Any]:
    """A task and its state, with what this computer remembers of it."""
    origin = handle.origin()
    return {
        "type": "task",
        "id": handle.id,
        "cloud": handle.cloud,
        "state": str(now.state),
        "reason": now.reason,
        "exit_code": now.exit_code,
        "counts": now.counts,
        "ranks": [
            {
                "rank": rank.rank,
                "state": str(rank.state),
                "attempt": rank.attempt,
                "exit_code": rank.exit_code,
                "reason": rank.reason,
                "machine": rank.machine,
            }
            for rank in now.ranks
        ],
        "created": origin.created if origin else "",
        "machine": origin.machine if origin else "",
        "command": origin.command if origin else "",
        "seconds": _run_seconds(now),
    }


def status(handle: Handle, now: Status) -> dict[str, Any]:
    """The same with its machines, what the scaler tells, and what the store knows of the task."""
    row = task(handle, now)
    known = dict.fromkeys(("created", "machine", "command"), "")  # of what was never complete
    if now.ranks:
        asked = handle.task()
        known["created"] = row["created"] or handle.created()
        known["machine"] = asked.machine
        known["command"] = row["command"] or command_of(asked)
    ranks = {rank.machine: rank.rank for rank in now.ranks if rank.machine}
    machines = [asdict(each) | {"rank": ranks.get(each.id)} for each in handle.machines()]
    events = [event.to_dict() for event in handle.events()]
    return row | known | {"machines": machines, "events": events}


def _run_seconds(now: Status) -> int | None:
    """How long the newest attempts ran, or run by now; None if that is not known."""
    runs = any(rank.began and not rank.ended for rank in now.ranks)
    ends = [utc_now()] if runs else [rank.ended for rank in now.ranks]
    return seconds_between([rank.began for rank in now.ranks], ends)


def ended(result: Result) -> dict[str, Any]:
    """How a run went."""
    home = result.downloaded
    return {
        "type": "ended",
        "id": result.id,
        "state": str(result.status),
        "exit_code": result.exit_code,
        "seconds": result.seconds,
        "attempts": result.attempts,
        "files": home.files if home else 0,
        "bytes": home.bytes if home else 0,
        "results": home.folder if home else "",
    }


def deleted_task(id: str, ending: Ending, log: str) -> dict[str, Any]:
    """A task that is gone, as far as this computer knows it. `log`: where it was saved."""
    return {"type": "deleted-task", "id": id} | vars(ending) | {"log": log}


def plan(planned: Plan) -> dict[str, Any]:
    """What creating a task would do."""
    upload = planned.upload
    return {
        "type": "plan",
        "id": planned.id,
        "cloud": planned.cloud,
        "exists": planned.exists,
        "files": upload.files if upload else 0,
        "bytes": upload.bytes if upload else 0,
        "parts": [vars(part) for part in upload.parts] if upload else [],
        "excluded": list(upload.excluded) if upload else [],
        "resources": list(planned.resources),
    }


def machine(found: Machine, now: Status) -> dict[str, Any]:
    """A machine that stays."""
    return _short("machine", found, now) | {"address": found.address}


def runner(found: Handle, what: Runner, now: Status) -> dict[str, Any]:
    """A CI runner."""
    return _short("runner", found, now) | {
        "driver": what.driver,
        "repo": what.repo,
        "name": what.name,
        "labels": list(what.labels),
    }


def _short(kind: str, found: Handle, now: Status) -> dict[str, Any]:
    return {
        "type": kind,
        "id": found.id,
        "cloud": found.cloud,
        "state": str(now.state),
        "reason": now.reason,
    }


def image(cloud: str, made: MadeImage) -> dict[str, Any]:
    """An image that was made."""
    return {
        "type": "image",
        "name": made.name,
        "cloud": cloud,
        "region": made.region,
        "created": made.created,
        "base": made.base,
        "ready": made.ready,
    }
