"""What users type, read and write in a main.tf: all of it, word for word."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import click
from click.testing import CliRunner
from google.protobuf.json_format import MessageToDict

from sojourn.cli.app import cli
from sojourn.terraform.plugin import wire
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.service import Service
from sojourn.terraform.provider import IterativeProvider
from tests.golden.frozen import same_json, same_text

_GROUP = click.Context(cli, info_name="sojourn")


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


def test_help() -> None:
    same_text("help.txt", "\n".join(map(_help, _verbs())))


def test_the_schema_of_the_provider() -> None:
    methods = Service(IterativeProvider(), Log("golden")).methods()
    answer, _ = methods["GetProviderSchema"]
    schemas = MessageToDict(answer(wire.Empty()), preserving_proto_field_name=True)
    same_json("provider.json", _readable(schemas))


def _readable(message: Any) -> Any:
    """Types are bytes of JSON in the protocol, which would be base64 here."""
    if isinstance(message, list):
        return [_readable(item) for item in message]
    if not isinstance(message, dict):
        return message
    return {
        key: b64decode(value).decode() if key == "type" else _readable(value)
        for key, value in message.items()
    }
