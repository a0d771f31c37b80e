"""The commands by name. Each is loaded when it is called, so that starting costs little."""

from __future__ import annotations

import io
import sys
from importlib import import_module

from sojourn import __version__
from sojourn.cli.texts import cleandoc
from sojourn.core.errors import SojournError
from sojourn.core.lazy import lazily

with lazily("inspect", cleandoc=cleandoc):  # of which nothing else is needed, and it is large
    import click

__all__ = ["cli", "run"]

# name -> (module below `commands`, what `--help` says), in the order in which `--help` lists them
_COMMANDS = {
    "run": ("run", "Run a script on a machine, follow its log and download its results."),
    "list": ("list", "List all tasks (aliases: ls, ps)."),
    "status": ("status", "Show the state of a task."),
    "logs": ("logs", "Show the log of a task."),
    "attach": ("attach", "Follow a task to its end, as `run` does."),
    "exec": ("exec", "Run a command on the machine of a running task."),
    "ssh": ("ssh", "Open a shell on the machine of a running task."),
    "pull": ("pull", "Download the results of a task, at any time."),
    "stop": ("stop", "Stop the machines of a task; `start` resumes it."),
    "start": ("start", "Resume a stopped task."),
    "interrupt": ("interrupt", "Take a machine away, as a spot market does."),
    "delete": ("delete", "Download results and delete a task (alias: rm)."),
    "gc": ("gc", "Show or delete finished and incomplete tasks."),
    "machine": ("machine", "Create machines that stay, and use them."),
    "image": ("image", "Make machine images, list and delete them."),
    "runner": ("runner", "Launch CI runners, list and delete them."),
    "mpi": ("mpi", "Run MPI programs on several machines."),
    "config": ("config", "Show the settings, and where each value is from."),
    "doctor": ("doctor", "Check the installation, credentials and clouds."),
    "terraform": ("terraform", "Install or remove the provider for Terraform and OpenTofu."),
    "completion": ("completion", "Print the completion script for a shell."),
    "create": ("run", "The same as `run --detach`."),
    "read": ("read", "Show the log and the state of a task, or follow its log."),
}
_FUNCTIONS = {"exec": "exec_", "list": "list_"}  # which Python has others of
_ALIASES = {"ls": "list", "ps": "list", "rm": "delete"}


class _Lazy(click.Group):
    """Knows its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = _ALIASES.get(name, name)
        if name not in _COMMANDS:
            return None
        module = import_module(f"sojourn.cli.commands.{_COMMANDS[name][0]}")
        command: click.Command = getattr(module, _FUNCTIONS.get(name, name))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and name not in _ALIASES and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            suggestion = (
                f"Did you mean {near[0]!r}?" if near else "Run `sojourn --help` for a list."
            )
            ctx.fail(f"unknown command {name!r}. {suggestion}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Run `sojourn COMMAND --help` for details and examples.",
)
@click.version_option(__version__, prog_name="sojourn")
def cli() -> None:
    """Run a script with its data on a bigger machine; leave nothing behind.

    \b
    sojourn run --workdir . --output results train.sh
    """


def run() -> int:
    """Carry out the command that was typed: errors become words and an exit code."""
    _print_anything()
    try:
        return _called()
    except OSError as error:  # what click prints by itself, such as help, was not taken
        from sojourn.cli.render import show_unwritable

        return show_unwritable(error)


def _called() -> int:
    try:
        code = cli.main(prog_name="sojourn", standalone_mode=False)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.Abort:
        code = 130
    except click.ClickException as error:
        from sojourn.cli.render import show_misuse

        show_misuse(error)
        code = error.exit_code
    except SojournError as error:
        from sojourn.cli.render import show_error

        code = show_error(error)
    return code if isinstance(code, int) else 0


def _print_anything() -> None:
    """Names of files may be no text, and texts may not be in the terminal's character set."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        unicode = sys.stdout.encoding.lower().startswith("utf")
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "replace")
