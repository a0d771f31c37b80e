"""Prints the help of all commands: `python -m tests.golden.helps`.

A process of its own, for click keeps parts of a help that tests have asked for in other ways.
"""

from __future__ import annotations

import sys

import click
from click.testing import CliRunner

from sojourn.cli.app import cli

_GROUP = click.Context(cli, info_name="sojourn")


def main() -> None:
    sys.stdout.write("\n".join(map(_help, _verbs())))


def _verbs(group: click.Group = cli, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of all commands and groups, and of none: the program itself."""
    found = [before]
    for name in sorted(group.list_commands(_GROUP)):
        command = group.get_command(_GROUP, name)
        inner = (*before, name)
        found += _verbs(command, inner) if isinstance(command, click.Group) else [inner]
    return found


def _help(words: tuple[str, ...]) -> str:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*words, "--help"], prog_name="sojourn")
    assert shown.exit_code == 0, shown.output
    return f"$ {' '.join(['sojourn', *words, '--help'])}\n{shown.output}"


if __name__ == "__main__":
    main()
