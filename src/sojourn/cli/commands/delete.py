"""`sojourn delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.each import deleted_meanwhile, gone_since_listed, tell_deleted, to_each
from sojourn.cli.everything import all_options, all_tasks
from sojourn.cli.foreign import refuse_elsewhere
from sojourn.cli.session import (
    Session,
    check_into,
    display_options,
    ids_argument,
    into_option,
    opened,
    output_option,
)
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle


@click.command()
@ids_argument
@all_options
@into_option("Download the results into this folder instead of the task's workdir.")
@output_option
@click.option("--no-pull", is_flag=True, help="Discard the results instead of downloading them.")
@click.option(
    "--force",
    is_flag=True,
    help="Delete even if an earlier step fails; machines get 10 seconds to stop.",
)
@display_options
@click.pass_context
def delete(
    ctx: click.Context,
    ids: Sequence[str],
    everything: bool,
    yes: bool,
    into: str | None,
    output: str | None,
    no_pull: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Stop the machines, download the results, then delete the task.

    If the results cannot be downloaded, nothing is deleted.

    \b
    sojourn delete tpi-brave-amber-otter
    sojourn delete brave calm --no-pull
    sojourn delete --all
    """
    if not ids and not everything:
        raise click.UsageError("Missing argument 'IDS...', or --all.", ctx)
    with opened(as_json=as_json):
        check_into(into)

    def delete_one(session: Session, handle: Handle) -> None:
        fetch = not no_pull
        if everything and fetch and not into:
            fetch = _belong_here(session, handle, force)
        handle.delete(into=into, output=output, fetch=fetch, force=force)
        tell_deleted(session, handle.id)

    complete = True
    if everything:
        fate = "are lost" if no_pull else "are downloaded first"
        ids, complete = all_tasks(
            ids,
            question=f"Delete {{tasks}}? {{Their}} results {fate}.",
            concerned=lambda _: True,
            yes=yes,
            as_json=as_json,
        )
    gone = gone_since_listed if everything else deleted_meanwhile
    code = to_each(ids, as_json, delete_one, gone=gone) if ids else 0
    ctx.exit(code or int(not complete))


def _belong_here(session: Session, handle: Handle, force: bool) -> bool:
    """Whether results can come to the task's own folder; refused without `force` if they cannot."""
    try:
        refuse_elsewhere(handle)
    except InvalidInput as error:
        if not force:
            raise
        session.ctx.warn(f"{handle.id}: could not download the results: {error}")
        return False
    return True
