"""`sojourn ssh`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.chosen import chosen
from sojourn.cli.session import id_argument, opened, tty_option

if TYPE_CHECKING:
    from sojourn.api import Handle

# The user's own, else the one that people like best of those that there are.
_LOGIN = 'exec "${SHELL:-$(command -v bash || echo /bin/sh)}" -l'


@click.command()
@id_argument
@click.option("--rank", type=int, default=0, help="Use the machine of this rank (default: 0).")
@tty_option
@click.pass_context
def ssh(ctx: click.Context, id: str | None, rank: int, tty: bool | None) -> None:
    """Open a login shell on the machine of a running task, beside its script.

    The shell starts in the script's workdir, with its environment. Exits with the shell's exit
    code; the task keeps running. Without ID, uses the last task created in this folder.

    \b
    sojourn ssh
    sojourn ssh tpi-brave-amber-otter --rank 1
    """
    with opened(as_json=False) as session:
        ctx.exit(shell_on(chosen(session, id), rank, tty))


def shell_on(handle: Handle, rank: int, tty: bool | None) -> int:
    """Open a login shell; returns its exit code."""
    from sojourn.cli.remote import attend, terminal_here

    terminal = terminal_here(tty)
    process = handle.popen(_LOGIN, rank, terminal=terminal)
    return attend(process, shown=terminal is not None)
