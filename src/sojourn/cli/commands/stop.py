"""`sojourn stop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.each import gone_since_listed, to_each, with_state
from sojourn.cli.everything import all_options, all_tasks
from sojourn.cli.session import display_options, ids_argument

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command()
@ids_argument
@all_options
@display_options
@click.pass_context
def stop(
    ctx: click.Context, ids: Sequence[str], everything: bool, yes: bool, as_json: bool
) -> None:
    """Stop the machines of tasks after they save their work.

    `sojourn start` resumes the tasks; `sojourn pull` downloads their results so far. Without IDS,
    uses the last task created in this folder.

    \b
    sojourn stop tpi-brave-amber-otter
    sojourn stop --all
    """
    complete = True
    if everything:
        ids, complete = all_tasks(
            ids,
            question="Stop {tasks}?",
            concerned=lambda state: not state.ended,
            yes=yes,
            as_json=as_json,
        )
    code = 0
    if ids or not everything:
        stopped = with_state(lambda handle: handle.stop())
        code = to_each(ids, as_json, stopped, gone=gone_since_listed if everything else None)
    ctx.exit(code or int(not complete))
