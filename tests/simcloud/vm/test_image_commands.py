"""`sojourn image` as a user types it: each command is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.clouds.vm_kit import python_of_machines
from tests.simcloud.vm.sides import Side, sides
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

# The command line, with images that have the Python of this computer.
COMMAND = """
import sys
from dataclasses import replace
from importlib import import_module

generic = import_module(f"sojourn.clouds.{sys.argv[1]}.machines")._GENERIC
generic["ubuntu"] = replace(generic["ubuntu"], pythons=(sys.argv[2],))
del sys.argv[1:3]
from sojourn.cli import main

main()
"""
SCRIPT = "#!/bin/sh\nset -e\necho installing\necho the tool >/etc/tool\n"
# The call that makes an image, and how long it takes; on Azure, so does the copy before it.
MAKING = {
    "aws": ("ec2:CreateImage", "image_ready", 600.0),
    "az": ("images.createOrUpdate", "image", 3.0),
}


class Shell:
    """Runs commands in a folder."""

    def __init__(self, side: Side, folder: Path) -> None:
        self.cloud = str(side.kit.cloud)
        self._folder = folder
        (folder / "setup.sh").write_text(SCRIPT)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = (sys.executable, "-c", COMMAND, self.cloud, python_of_machines(), *words)
        return subprocess.Popen(
            command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        printed, errors = process.communicate(timeout=patience(180))
        return process.returncode, printed, errors

    def ok(self, *words: str) -> str:
        code, printed, errors = self.run(*words)
        assert code == 0, errors
        return printed

    def rows(self, *words: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.ok(*words, "--json").splitlines()]
        return [row for row in found if row["type"] != "note"]

    def make(self) -> subprocess.Popen[str]:
        return self.start("image", "make", "tools", "--cloud", self.cloud, "--script", "setup.sh")


@pytest.fixture
def shell(side: Side, tmp_path: Path) -> Shell:
    return Shell(side, tmp_path)


@sides("gcp", full=("aws", "az"))
def test_an_image_is_made_used_listed_and_deleted(side: Side, shell: Shell) -> None:
    making = shell.make()
    printed, errors = making.communicate(timeout=patience(180))
    assert (making.returncode, printed) == (0, "installing\nsojourn:tools\n"), errors
    assert shell.ok("list", "--quiet") == ""
    header, row = shell.ok("image", "list").splitlines()
    assert header.split() == ["IMAGE", "STATE", "CLOUD", "REGION", "CREATED", "BASE"]
    assert row.split()[:3] == ["sojourn:tools", "ready", shell.cloud]
    options = ("--cloud", shell.cloud, "--image", "sojourn:tools")
    assert "the tool" in shell.ok("run", *options, "--", "cat", "/etc/tool")
    code, _, errors = shell.run(
        *("image", "make", "tools", "--cloud", shell.cloud, "--script", "setup.sh")
    )
    assert code == 1
    assert f"run `sojourn image delete tools --cloud {shell.cloud}` first" in errors
    assert shell.ok("image", "delete", "tools", "--cloud", shell.cloud) == "Deleted tools\n"
    assert shell.rows("image", "list") == []
    code, _, errors = shell.run("run", *options, "--", "true")
    assert code == 2
    assert "run `sojourn image make tools" in errors


@sides("az", full=("aws",))
def test_an_unfinished_image_is_garbage_once_its_machine_is_gone(side: Side, shell: Shell) -> None:
    call, setting, seconds = MAKING[shell.cloud]
    setattr(side.account.timing, setting, seconds)
    making = shell.make()
    until(lambda: any(each.name == call for each in side.account.calls), seconds=120)
    making.kill()
    making.communicate()
    [image] = shell.rows("image", "list")
    assert (image["name"], image["ready"]) == ("tools", False)
    assert shell.rows("gc") == []  # it may be somebody's who makes it just now
    setattr(side.account.timing, setting, 0.0)
    [maker] = shell.ok("list", "--quiet").split()
    shell.ok("delete", "--no-pull", "--force", maker)  # nobody is left on it to take its leave
    assert shell.ok("gc") == "image tools  making it did not finish\n"
    assert shell.ok("gc", "--yes") == "Deleted image tools  making it did not finish\n"
    assert shell.rows("image", "list") == []
