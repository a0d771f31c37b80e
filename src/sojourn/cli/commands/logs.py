"""`sojourn logs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli.chosen import chosen, last_one
from sojourn.cli.session import display_options, id_argument, opened
from sojourn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.events import LogLine


@dataclass(frozen=True)
class Look:
    """What somebody wants to see of a log, and how."""

    follow: bool = False
    rank: int | None = None
    attempt: int | None = None
    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False

    @property
    def part(self) -> dict[str, Any]:
        """For `Handle.logs`."""
        part = {name: getattr(self, name) for name in ("rank", "attempt", "tail", "since")}
        return {name: value for name, value in part.items() if value is not None}


@click.command()
@id_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the task ends.")
@click.option("--tail", type=click.IntRange(min=0), help="Show only the last N lines.", metavar="N")
@click.option(
    "--since", help="Show only lines newer than a duration, such as 10m, or a time (UTC)."
)
@click.option("--rank", type=int, help="Show only this rank.")
@click.option("--attempt", type=int, help="Show only this attempt.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@display_options
@click.pass_context
def logs(
    ctx: click.Context,
    id: str | None,
    follow: bool,
    tail: int | None,
    since: str | None,
    rank: int | None,
    attempt: int | None,
    timestamps: bool,
    as_json: bool,
) -> None:
    """Show the log of a task. Logs outlive the machines that wrote them.

    With --follow, exits with the script's exit code; Ctrl-C stops following, not the task.
    Without ID, uses the last task created in this folder.

    \b
    sojourn logs --follow
    sojourn logs tpi-brave-amber-otter --tail 20 --follow
    sojourn logs brave --since 10m
    sojourn logs brave --since 2026-01-31T12:00:00Z
    sojourn logs brave --rank 2 --attempt 1 --timestamps
    """
    from sojourn.cli.times import moment

    with opened(as_json=as_json):
        start = None if since is None else moment("since", since)
    look = Look(follow, rank, attempt, tail, start, timestamps)
    ctx.exit(show_logs(id, look, as_json))


def show_logs(id: str | None, look: Look, as_json: bool = False) -> int:
    """Print logs; returns the exit code."""
    from sojourn import api
    from sojourn.cli.following import exit_code, looked_at
    from sojourn.cli.savedlog import show_saved

    id = last_one(id)  # noqa: A001 -- what `run` deleted just now is meant, too
    with opened(as_json=as_json) as session:
        try:
            found = chosen(session, id)
        except NotFound:
            saved = api.saved_log(id) if id is not None else None
            if saved is None:
                raise
            refused = [*look.part, *(["timestamps"] if look.timestamps else [])]
            return show_saved(session, *saved, look.tail, refused, look.follow)
        ranks = _check(found, look)
    quiet = not look.follow
    with opened(as_json=as_json, timestamps=look.timestamps, ranks=ranks, quiet=quiet) as session:
        handle = api.get(found.id, cloud=found.cloud, ctx=session.ctx)
        if look.follow:
            return exit_code(looked_at(session, handle, **look.part))
        _show(session, handle.logs(**look.part), ranks=ranks)
        return 0


def _show(session: Session, lines: Iterable[LogLine], *, ranks: bool) -> None:
    """Show lines, with a mark where the next attempt of a rank begins."""
    attempts: dict[int, int] = {}
    for line in lines:
        session.ctx.check()  # there may be many
        if attempts.setdefault(line.rank, line.attempt) != line.attempt:
            attempts[line.rank] = line.attempt
            whose = f"rank {line.rank}, " if ranks else ""
            session.renderer.mark(f"--- {whose}attempt {line.attempt} ---")
        session.renderer(line)


def _check(handle: Handle, look: Look) -> bool:
    """Refuse a rank or an attempt that there is not; whether lines need to say their rank."""
    parallelism = handle.task().parallelism
    if look.rank is not None and not 0 <= look.rank < parallelism:
        raise InvalidInput("rank", f"must be between 0 and {parallelism - 1}, got {look.rank}")
    if look.attempt is not None:
        _check_attempt(handle, look.rank, look.attempt)
    return parallelism > 1 and look.rank is None


def _check_attempt(handle: Handle, rank: int | None, attempt: int) -> None:
    """The first can be asked for before it begins; of others nobody knows whether they come."""
    tried = [each.attempt for each in handle.status().ranks if rank in (None, each.rank)]
    last = max(1, *tried)
    if not 1 <= attempt <= last:
        raise InvalidInput("attempt", f"must be between 1 and {last}, got {attempt}")
