from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

from sojourn.clouds.aws.on_machine.settings import Settings
from sojourn.clouds.aws.user_data import LONGEST, user_data
from tests.unit.clouds.vm.told import PLACES

_SETTINGS = Settings(
    **PLACES,
    region="ap-southeast-1",
    bucket_region="ap-southeast-1",
    autoscaling="https://autoscaling.ap-southeast-1.amazonaws.com/",
    ec2="https://ec2.ap-southeast-1.amazonaws.com/",
    tag="sojourn:id",
    hook="last-words",
)


def _program(text: str) -> bytes:
    found = re.search(r"<<'END'\n(.*)\nEND\n", text, re.DOTALL)
    assert found
    return base64.b64decode(found[1])


def test_it_is_short_enough_with_room_to_spare() -> None:
    assert len(user_data(_SETTINGS).encode()) < LONGEST * 3 // 4


def test_it_is_a_script_that_a_shell_can_read() -> None:
    text = user_data(_SETTINGS)
    assert text.startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    assert "shutdown -P +1500" in text


def test_the_same_settings_give_the_same_bytes() -> None:
    assert user_data(_SETTINGS) == user_data(replace(_SETTINGS))


def test_its_program_imports_nothing_that_is_not_there(tmp_path: Path) -> None:
    program = tmp_path / "boot.zip"
    program.write_bytes(_program(user_data(_SETTINGS)))
    names = zipfile.ZipFile(io.BytesIO(program.read_bytes())).namelist()
    assert "__main__.py" in names
    code = (
        "from sojourn.clouds.vm.on_machine import boot; "
        "from sojourn.clouds.aws.on_machine import fetching; print(boot, fetching)"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-c"),
            f"import sys; sys.path.insert(0, sys.argv[1]); {code}",
            str(program),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(str(program)) == 2
