"""`sojourn exec`."""

from __future__ import annotations

import shlex

import click

from sojourn.cli.chosen import chosen
from sojourn.cli.session import complete_id, opened, tty_option
from sojourn.core.errors import NotFound

_KEY = "sojourn.dashed"
_WORDS = "words"


class _WithRemoteCommand(click.Command):
    """Takes options before and after the ID; all after `--`, or after these, is the command."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options, words, dashed = self._split(ctx, args)
        id = ""  # noqa: A001
        if not dashed and words:
            id, *words = words  # noqa: A001
            more, words, dashed = self._split(ctx, words)
            options += more
        ctx.meta[_KEY] = dashed
        return super().parse_args(ctx, [*options, "--", id, *words])

    def _split(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str], bool]:
        """The options at the beginning, the words after them, and whether `--` is between."""
        parsed, _, _ = self.make_parser(ctx).parse_args(list(args))
        found = parsed.get(_WORDS)
        words = list(found) if isinstance(found, list | tuple) else []
        options = args[: len(args) - len(words)]
        if options[-1:] == ["--"]:
            return options[:-1], words, True
        return options, words, False


@click.command("exec", cls=_WithRemoteCommand, options_metavar="[OPTIONS] [ID] --")
@click.argument(
    _WORDS, nargs=-1, metavar="COMMAND...", type=click.UNPROCESSED, shell_complete=complete_id
)
@click.option("--rank", type=int, default=0, help="Use the machine of this rank (default: 0).")
@tty_option
@click.pass_context
def exec_(ctx: click.Context, words: tuple[str, ...], rank: int, tty: bool | None) -> None:
    """Run a command on the machine of a running task, beside its script.

    The command runs in the script's workdir, with its environment. Standard input, output and
    error are yours, and so is its exit code. Ctrl-C interrupts the command, not the task. Without
    ID, uses the last task created in this folder.

    \b
    sojourn exec -- nvidia-smi
    sojourn exec tpi-brave-amber-otter -- tail -f train.log
    sojourn exec brave --rank 1 -- tar c results | tar x
    """
    from sojourn.cli.remote import attend, terminal_here

    id, *command = words  # noqa: A001
    if not command:
        ctx.fail(
            f"missing command. Run `{shlex.join(['sojourn', 'exec', *([id] if id else [])])} -- "
            "COMMAND`, or `sojourn ssh` for a shell."
        )
    with opened(as_json=False) as session:
        try:
            handle = chosen(session, id or None)
        except NotFound as error:
            if id and not ctx.meta[_KEY]:
                here = shlex.join(["sojourn", "exec", "--", id, *command])
                error.hint += f" Run `{here}` for the last task created in this folder."
            raise
        terminal = terminal_here(tty)
        process = handle.popen(command, rank, terminal=terminal)
        ctx.exit(attend(process, shown=terminal is not None))
