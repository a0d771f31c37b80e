"""The two configurations of the old provider's pages, with a shorter loop, on the local cloud."""

from __future__ import annotations

import json

import pytest

from tests.support.waiting import until
from tests.terraform import pages
from tests.terraform.project import HEAD, Project

_LOGS = """
output "logs" {
  value = try(join("\\n", iterative_task.example.logs), "")
}
"""
_LOOP = "(re)starting training loop from 1 up to 3 epochs"


@pytest.mark.parametrize("name", ["task", "front"])
def test_whole_life(project: Project, name: str) -> None:
    text = pages.shortened(pages.on_cloud(name, "local"))
    project.write(text.removeprefix(HEAD) + _LOGS)
    project.init()
    project.validate()
    planned = project.plan(code=2)
    assert "1 to add, 0 to change, 0 to destroy" in planned.out
    assert "Hello, world!" not in planned.out
    project.apply()
    assert project.task()["id"].startswith("tpi-")

    project.until_state("succeeded")
    # The report says so a moment before the machine has ended.
    until(lambda: "machine-ended" in str(project.refreshed()["events"]), 60)
    task = project.task()
    assert task["status"] == {"running": 0, "succeeded": 1, "failed": 0}
    assert [line.partition(" ")[2] for line in task["logs"][0].splitlines()][-4:] == [
        _LOOP,
        "1",
        "2",
        "3",
    ]
    assert [event.split()[1] for event in task["events"]] == ["machine-started", "machine-ended"]
    assert project.run("output", "--raw", "logs").out == task["logs"][0]
    shown = json.loads(project.run("show", "--json").out)
    assert shown["values"]["root_module"]["resources"][0]["values"]["logs"] == task["logs"]
    assert _LOOP in project.run("show", "-no-color").out
    project.plan(code=0)

    assert not (project.folder / "results").exists()
    project.destroy()
    assert (project.folder / "results" / "epoch.txt").read_text() == "3\n"
    assert project.resources() == {}
