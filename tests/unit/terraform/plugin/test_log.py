from __future__ import annotations

import json

import pytest

from sojourn.terraform.plugin.log import Log


def test_a_line_is_what_terraform_reads(capsys: pytest.CaptureFixture[str]) -> None:
    Log("provider.x", id="1").having(verb="read").write("warn", "a\nb", seconds=0.5)
    [line] = capsys.readouterr().err.splitlines()
    read = json.loads(line)
    assert read.pop("@timestamp").endswith("Z")
    assert read == {
        "@level": "warn",
        "@message": "a\nb",
        "@module": "provider.x",
        "id": "1",
        "verb": "read",
        "seconds": 0.5,
    }


def test_what_terraform_would_print_as_it_is_does_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Log("x").write("warn", "a\x1b[2Jb\nc", why="\x9b\u202e", number=1)
    read = json.loads(capsys.readouterr().err)
    assert (read["@message"], read["why"], read["number"]) == (
        "a\\x1b[2Jb\nc",
        r"\x9b\u202e",
        1,
    )
