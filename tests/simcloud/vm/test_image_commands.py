"""`sojourn image` as a user types it: each command is a process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.simcloud.vm.shell import Shell
from tests.simcloud.vm.sides import Side, sides
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

SCRIPT = "#!/bin/sh\nset -e\necho installing\necho the tool >/etc/tool\n"
# The call that makes an image, and how long it takes; on Azure, so does the copy before it.
MAKING = {
    "aws": ("ec2:CreateImage", "image_ready", 600.0),
    "az": ("images.createOrUpdate", "image", 3.0),
}


class ImageShell(Shell):
    """With a script in its folder that makes an image."""

    def __init__(self, side: Side, folder: Path) -> None:
        super().__init__(side, folder)
        (folder / "setup.sh").write_text(SCRIPT)

    def make(self) -> subprocess.Popen[str]:
        return self.start("image", "make", "tools", "--cloud", self.cloud, "--script", "setup.sh")


@pytest.fixture
def shell(side: Side, tmp_path: Path) -> ImageShell:
    return ImageShell(side, tmp_path)


@sides("gcp", full=("aws", "az"))
def test_an_image_is_made_used_listed_and_deleted(side: Side, shell: ImageShell) -> None:
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
def test_an_unfinished_image_is_garbage_once_its_machine_is_gone(
    side: Side, shell: ImageShell
) -> None:
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
