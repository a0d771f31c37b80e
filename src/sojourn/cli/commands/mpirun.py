"""`sojourn mpi run`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli.commandline import WORDS, Typed, WithCommand
from sojourn.cli.commands.run import show_plan
from sojourn.cli.following import run_through
from sojourn.cli.session import Session, display_options, opened
from sojourn.cli.target import is_command, read_target, stranded
from sojourn.cli.taskoptions import PATH, defaults_for, fields_from, mpi_options
from sojourn.core.argument import MPI
from sojourn.core.errors import InvalidInput
from sojourn.core.mpirun import HPL_INPUTS, check_grids, check_processes, with_launcher

if TYPE_CHECKING:
    from sojourn.cli.defaults import Defaults
    from sojourn.core.task import Task

_NAME = "sojourn.name"


class _WithName(WithCommand):
    """Takes a name first; options and what to run come after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = self._after_options(ctx, args)
        if words and "--" not in args[: len(args) - len(words)]:
            ctx.meta[_NAME] = words[0]
            args = [*args[: len(args) - len(words)], *words[1:]]
        return super().parse_args(ctx, args)

    def _typed(self, ctx: click.Context, args: list[str]) -> Typed:
        verb = f"mpi run {shlex.quote(ctx.meta.get(_NAME, 'NAME'))}"
        return replace(super()._typed(ctx, args), verb=verb)


@click.command("run", cls=_WithName, options_metavar="NAME [OPTIONS]")
@click.argument(
    WORDS,
    nargs=-1,
    type=PATH,
    metavar="[--] [SCRIPT|COMMAND] [ARGUMENTS]...",
    expose_value=False,
)
@mpi_options
@click.option("--gitignore", is_flag=True, help="Do not upload files that .gitignore excludes.")
@click.option("--dry-run", is_flag=True, help="Show what would be uploaded and created, then exit.")
@click.option("--keep", is_flag=True, help="Do not delete the task at the end.")
@click.option("--keep-failed", is_flag=True, help="Do not delete the task if it fails.")
@click.option("-t", "--timestamps", is_flag=True, help="Show when each line was printed (UTC).")
@display_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    gitignore: bool,
    dry_run: bool,
    keep: bool,
    keep_failed: bool,
    timestamps: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run an MPI program on several machines, and write what it prints to results/NAME.txt.

    A program runs in machines x slots processes. A script, or a command that is mpirun or mpiexec
    itself, runs once, on the first machine. Follows the log, downloads the results and deletes
    everything. A results/NAME.txt of a former run is kept as NAME.1.txt and so on.

    Before it creates anything, checks that -np and the process grids of an HPL.dat fit.

    Exits with the program's exit code. Ctrl-C detaches; the task keeps running.

    \b
    sojourn mpi run hello --machines 3 --slots 2 -- hostname
    sojourn mpi run hpl --machines 3 --slots 2 --file HPL.dat=@HPL.dat -- xhpl
    sojourn mpi run hpl --machines 3 --slots 2 -- mpirun -np 6 --bind-to core xhpl
    sojourn mpi run hpl --machines 3 --slots 2 --workdir . job.sh
    """
    name = ctx.meta.get(_NAME, "")
    if not name:
        ctx.fail("missing NAME: `sojourn mpi run NAME [OPTIONS] -- COMMAND`")
    with opened(as_json=as_json, timestamps=timestamps) as session:
        _check_name(name)
        under = defaults_for(MPI, options)
        task = _task(ctx, session, {**fields_from(options), "name": name}, under)
        if dry_run:
            ctx.exit(show_plan(session, [task], gitignore))
        log = Path(task.storage.workdir or ".") / "results" / f"{task.name}.txt"
        how = {"gitignore": gitignore, "keep": keep, "keep_failed": keep_failed}
        ctx.exit(run_through(session, [task], log_files=[log], **how))


def _check_name(name: str) -> None:
    """Refuse a name that no file can have."""
    if name.startswith(".") or "/" in name or not name.isprintable():
        raise InvalidInput("name", f"must be usable as a file name, results/NAME.txt, got {name!r}")


def _task(ctx: click.Context, session: Session, given: dict[str, Any], under: Defaults) -> Task:
    typed, workdir = Typed.of(ctx), under.workdir(given)
    given = {"mpi": {}, **given}
    command: tuple[str, ...] = ()
    if typed.words and (typed.dashed or is_command(typed.words[0], workdir)):
        slots = given["mpi"].get("slots", 1)
        command = with_launcher(typed.words, max(1, given.get("parallelism", 1) * slots))
        if not workdir and (left := stranded(typed.words[1:], workdir)):
            session.ctx.warn(f"Not uploading without --workdir: {', '.join(left)}")
        typed = replace(typed, words=command, dashed=True, literal=True)
    found = read_target(ctx, typed, workdir)
    if len(found) > 1:
        raise InvalidInput("script", f"{typed.words[0]} has {len(found)} tasks; must have one")
    task = under.fill(found[0], given)
    if command:
        check_processes(task, command)
    for path, text in _inputs(task):
        check_grids(task, path, text)
    return task


def _inputs(task: Task) -> list[tuple[str, str]]:
    """The inputs of HPL, by their paths: what the task brings itself is what programs find."""
    found = {path: text for path, text in task.files.items() if path.split("/")[-1] in HPL_INPUTS}
    for name in HPL_INPUTS:
        file = Path(task.storage.workdir) / name
        if task.storage.workdir and name not in found and file.is_file():
            found[str(file)] = file.read_text(errors="replace")
    return list(found.items())
