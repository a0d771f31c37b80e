"""`sojourn logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import id_argument, json_option, opened
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.api import Handle


@click.command()
@id_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the task has ended.")
@click.option("--rank", type=int, help="Only that of one rank.")
@click.option("--attempt", type=int, help="Only that of one attempt.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@json_option
@click.pass_context
def logs(
    ctx: click.Context,
    id: str,
    follow: bool,
    rank: int | None,
    attempt: int | None,
    timestamps: bool,
    as_json: bool,
) -> None:
    """Show what a task printed. Logs outlive the machines that wrote them.

    With --follow, the exit code is that of the script. Ctrl-C ends the following, not the task.

    \b
    sojourn logs tpi-brave-amber-otter --follow
    sojourn logs brave --rank 2 --attempt 1 --timestamps
    """
    ctx.exit(show_logs(id, follow, rank, attempt, timestamps, as_json))


def show_logs(
    id: str,
    follow: bool,
    rank: int | None = None,
    attempt: int | None = None,
    timestamps: bool = False,
    as_json: bool = False,
) -> int:
    """Print logs; returns the exit code."""
    from sojourn import api
    from sojourn.cli.following import exit_code, followed

    with opened(as_json=as_json, timestamps=timestamps, quiet=not follow) as session:
        handle = api.get(id, ctx=session.ctx)
        parallelism = handle.task().parallelism
        if rank is not None and not 0 <= rank < parallelism:
            raise InvalidInput("rank", f"{rank} is not one of 0 to {parallelism - 1}")
        if attempt is not None:
            _check_attempt(handle, rank, attempt)
        ranks = parallelism > 1 and rank is None
    with opened(as_json=as_json, timestamps=timestamps, ranks=ranks, quiet=not follow) as session:
        handle = api.get(id, ctx=session.ctx)
        if follow:
            followed(session, handle, rank, attempt)
            return exit_code(handle.status())
        for line in handle.logs(rank=rank, attempt=attempt):
            session.renderer(line)
        return 0


def _check_attempt(handle: Handle, rank: int | None, attempt: int) -> None:
    """The first can be asked for before it begins; of others nobody knows whether they come."""
    tried = [each.attempt for each in handle.status().ranks if rank in (None, each.rank)]
    last = max(1, *tried)
    if not 1 <= attempt <= last:
        raise InvalidInput("attempt", f"{attempt} is not one of 1 to {last}")
