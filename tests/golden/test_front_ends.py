"""What users type, read and write in a main.tf: all of it, word for word."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64decode
from typing import Any

from google.protobuf.json_format import MessageToDict

from sojourn.terraform.plugin import wire
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.service import Service
from sojourn.terraform.provider import IterativeProvider
from tests.golden.frozen import FOLDER, same_json, same_text


def test_help() -> None:
    program = [sys.executable, "-m", "tests.golden.helps"]
    same_text("help.txt", subprocess.check_output(program, cwd=FOLDER.parents[1], text=True))


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
