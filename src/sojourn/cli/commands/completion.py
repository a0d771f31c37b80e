"""`sojourn completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    eval "$(sojourn completion bash)"
    sojourn completion fish > ~/.config/fish/completions/sojourn.fish
    """
    from click.shell_completion import get_completion_class

    from sojourn.cli.app import cli

    kind = get_completion_class(shell)
    if kind is not None:
        click.echo(kind(cli, {}, "sojourn", "_SOJOURN_COMPLETE").source())
