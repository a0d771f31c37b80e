"""`terraform destroy` and Sojourn's own commands on one task, at the same time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.waiting import patience
from tests.terraform.hcl import SLEEPS, STORAGE, task
from tests.terraform.project import Project

pytestmark = pytest.mark.slow
_DONE = "#!/bin/sh\nmkdir results\necho done > results/end\n"


def _start(project: Project, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sojourn.cli", *words],
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "running"])
@pytest.mark.parametrize("verb", ["delete", "stop"])
def test_destroy_beside_another_verb(project: Project, verb: str, ended: bool) -> None:
    """Both succeed, whoever comes first, and nothing tells to use force."""
    (project.folder / "work").mkdir()
    project.write(task(_DONE if ended else SLEEPS, STORAGE, *(["wait = true"] if ended else [])))
    project.init()
    project.apply()
    [own] = project.tasks()
    destroying = project.start("destroy", "-no-color", "-auto-approve")
    beside = _start(project, verb, own)
    destroyed = project.finish(destroying)
    said = "".join(beside.communicate(timeout=patience(100)))
    assert destroyed.code == 0, destroyed.said
    assert beside.returncode == 0 or f"Task {own} not found" in said, said
    assert "--force" not in destroyed.said + said
    assert (project.known(), project.tasks()) == ({}, [])
    if ended:
        assert (project.folder / "work/results/end").read_text() == "done\n"
