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
