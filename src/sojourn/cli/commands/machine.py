"""`sojourn machine`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sojourn.cli.chosen import check_machine, chosen
from sojourn.cli.commands.ssh import shell_on
from sojourn.cli.each import deleted_meanwhile, tell_deleted, to_each, with_state
from sojourn.cli.session import (
    Session,
    check_into,
    display_options,
    id_argument,
    ids_argument,
    into_option,
    is_verbose,
    opened,
    tty_option,
)
from sojourn.cli.taskoptions import PATH, machine_fields, machine_options
from sojourn.core.durations import format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle, Machine
    from sojourn.core.status import Status
    from sojourn.core.task import Task
    from sojourn.taskfiles.changes import Fields


@click.group()
def machine() -> None:
    """Create machines that stay, and use them.

    \b
    sojourn machine create --machine m+t4 setup.sh
    sojourn machine ssh
    sojourn machine list
    """


@machine.command(options_metavar="[OPTIONS]")
@click.argument("script", type=PATH, required=False)
@machine_options("24h; 0: no limit")
@click.option(
    "--idle-timeout",
    metavar="DURATION",
    help="End the machine if it is idle for this long (default: 1h; 0: never).",
)
@click.option("--gitignore", is_flag=True, help="Do not upload files that .gitignore excludes.")
@display_options
def create(script: str | None, gitignore: bool, as_json: bool, **options: Any) -> None:
    """Create a machine and wait until it can be used; prints its ID.

    SCRIPT is its startup script. If the machine is lost, another one takes its place, with the
    same workdir and after the same script.

    \b
    sojourn machine create --machine m+t4 --spot 0 setup.sh
    sojourn machine create --workdir . --idle-timeout 30m
    """
    from sojourn import api
    from sojourn.api import rows
    from sojourn.api.machine import machine_task
    from sojourn.taskfiles.reading import read_text

    with opened(as_json=as_json) as session:
        text = read_text(Path(script)) if script else ""
        task = machine_task(text, cast("Fields", machine_fields(options)))
        made = api.Machine.make(task, gitignore=gitignore, ctx=session.ctx)
        session.renderer.result(rows.created(made, address=made.address), made.id)
        session.ctx.note(_advice(task, made.id))


def _advice(task: Task, id: str) -> str:
    """What it costs to forget it, and how not to."""
    limits = [f"after {format_seconds(task.timeout)}"] if task.timeout else []
    if task.idle_timeout:
        limits.append(f"when idle for {format_seconds(task.idle_timeout)}")
    end = f"It ends {' or '.join(limits)}" if limits else "It never ends by itself"
    from sojourn import clouds

    # A cloud whose machines are this computer takes none.
    cost = (
        ", and costs money until then" if clouds.load(task.cloud).features.private_machines else ""
    )
    return f"{end}{cost}. Run `sojourn ssh {id}` to use it, `sojourn delete {id}` to delete it."


@machine.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print IDs only, one per line.")
@display_options
def list_(quiet: bool, as_json: bool) -> None:
    """List all machines, with their states and addresses.

    \b
    sojourn machine list
    """
    from sojourn import api
    from sojourn.api import rows
    from sojourn.cli.rows import task_table

    with opened(as_json=as_json) as session:
        found = api.Machine.all(ctx=session.ctx)
        if as_json:
            for each, status in found:
                session.renderer.result(rows.machine(each, status), "")
        elif quiet:
            session.renderer.result({}, [each.id for each, _ in found])
        elif found:
            lines = [_columns(each, status) for each, status in found]
            session.renderer.result({}, task_table(lines, _HEADER, whole=is_verbose()))
        else:
            session.ctx.note("No machines found. Run `sojourn machine create --help` to start one.")


_HEADER = ("ID", "STATE", "CLOUD", "ADDRESS", "REASON")


def _columns(found: Machine, status: Status) -> tuple[str, ...]:
    return (found.id, str(status.state), found.cloud, found.address or "-", status.reason)


@machine.command()
@click.argument("ids", nargs=-1, required=True)
@display_options
@click.pass_context
def stop(ctx: click.Context, ids: Sequence[str], as_json: bool) -> None:
    """Stop machines after they save their workdirs; `start` resumes them.

    \b
    sojourn machine stop tpi-brave-amber-otter
    """
    stopped = with_state(lambda handle: handle.stop())
    ctx.exit(to_each(ids, as_json, stopped, lambda handle: check_machine(handle, "stop")))


@machine.command()
@ids_argument
@display_options
@click.pass_context
def start(ctx: click.Context, ids: Sequence[str], as_json: bool) -> None:
    """Resume stopped machines, with their workdirs.

    Without IDS, uses the last machine created in this folder.

    \b
    sojourn machine start tpi-brave-amber-otter
    """
    started = with_state(lambda handle: handle.start())
    ctx.exit(to_each(ids, as_json, started, lambda handle: check_machine(handle, "start")))


@machine.command()
@id_argument
@tty_option
@click.pass_context
def ssh(ctx: click.Context, id: str | None, tty: bool | None) -> None:
    """Open a login shell on a machine.

    The shell starts in the machine's workdir. Exits with the shell's exit code; the machine keeps
    running. Without ID, uses the last machine created in this folder.

    \b
    sojourn machine ssh
    """
    with opened(as_json=False) as session:
        handle = chosen(session, id)
        check_machine(handle, "ssh")
        ctx.exit(shell_on(handle, 0, tty))


@machine.command()
@click.argument("ids", nargs=-1, required=True)
@into_option("Download the results into this folder instead of the machine's workdir.")
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
    into: str | None,
    no_pull: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Download the output of machines, if they have any, then delete them.

    \b
    sojourn machine delete tpi-brave-amber-otter
    """
    with opened(as_json=as_json):
        check_into(into)

    def delete_one(session: Session, handle: Handle) -> None:
        handle.delete(into=into, fetch=not no_pull, force=force)
        tell_deleted(session, handle.id)

    def check(handle: Handle) -> None:
        check_machine(handle, "delete")

    ctx.exit(to_each(ids, as_json, delete_one, check, deleted_meanwhile))
