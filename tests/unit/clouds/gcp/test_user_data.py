"""The startup script carries a program, and nothing that it does not need."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from sojourn.clouds.gcp.on_machine.settings import Settings
from sojourn.clouds.gcp.user_data import LONGEST, startup_script
from tests.unit.clouds.vm.told import PLACES

_SETTINGS = Settings(
    **PLACES,
    zone="us-west1-b",
    group="https://compute.googleapis.com/compute/v1/projects/p/zones/z/instanceGroupManagers/g",
)


def test_it_is_short_enough_with_room_to_spare() -> None:
    assert len(startup_script(_SETTINGS).encode()) < LONGEST // 4


def test_it_is_a_script_that_a_shell_can_read() -> None:
    text = startup_script(_SETTINGS)
    assert text.startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    assert "shutdown -P +1500" in text


def test_the_same_settings_give_the_same_bytes() -> None:
    assert startup_script(_SETTINGS) == startup_script(replace(_SETTINGS))


def test_its_program_imports_nothing_that_is_not_there(tmp_path: Path) -> None:
    found = re.search(r"<<'END'\n(.*)\nEND\n", startup_script(_SETTINGS), re.DOTALL)
    assert found
    program = tmp_path / "boot.zip"
    program.write_bytes(base64.b64decode(found[1]))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from sojourn.clouds.vm.on_machine import boot; "
        "from sojourn.clouds.gcp.on_machine import fetching; print(boot, fetching)"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count(str(program)) == 2
