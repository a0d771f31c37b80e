"""What verbs return as the rows of the documented schema: for `--json`, and for any front end.

Events and errors are such rows by themselves, see their `to_dict`. Words for people do not belong
here.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.core.clock import seconds_between, utc_now
from sojourn.core.command import command_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api.handle import Handle, Result
    from sojourn.api.machine import Machine
    from sojourn.core.events import CloudEvent
    from sojourn.core.interfaces import MadeImage, Member
    from sojourn.core.runner import Runner
    from sojourn.core.status import Status
    from sojourn.engine.creation import Plan
    from sojourn.engine.ledger import Ending

__all__ = [
    "About",
    "created",
    "deleted_task",
    "ended",
    "image",
    "machine",
    "plan",
    "run_seconds",
    "runner",
    "status",
    "task",
]


class About(NamedTuple):
    """What is known of a task beside its state; empty what is not."""

    created: str = ""
    machine: str = ""
    command: str = ""

    @classmethod
    def here(cls, handle: Handle) -> About:
        """What this computer remembers of it."""
        origin = handle.origin()
        return cls(origin.created, origin.machine, origin.command) if origin else cls()

    @classmethod
    def stored(cls, handle: Handle) -> About:
        """What the store knows as well, whoever created it."""
        here, task = cls.here(handle), handle.task()
        return cls(here.created or handle.created(), task.machine, here.command or command_of(task))


def created(handle: Handle, **more: Any) -> dict[str, Any]:
    """A task that was created just now."""
    return {"type": "created", "id": handle.id} | more


def task(handle: Handle, now: Status, about: About) -> dict[str, Any]:
    """A task and its state."""
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
        "created": about.created,
        "machine": about.machine,
        "command": about.command,
        "seconds": run_seconds(now),
    }


def status(
    handle: Handle,
    now: Status,
    about: About,
    machines: Sequence[Member],
    events: Sequence[CloudEvent],
) -> dict[str, Any]:
    """The same with its machines, and what the scaler tells."""
    ranks = {rank.machine: rank.rank for rank in now.ranks if rank.machine}
    return task(handle, now, about) | {
        "machines": [asdict(each) | {"rank": ranks.get(each.id)} for each in machines],
        "events": [event.to_dict() for event in events],
    }


def run_seconds(now: Status) -> int | None:
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
