"""The two configurations of the old provider's pages, with a shorter loop, on the local cloud."""

from __future__ import annotations

import json

import pytest

from tests.support.waiting import until
from tests.terraform.project import Project

# Of the page on the task.
_PAGE = """
resource "iterative_task" "example" {
  cloud       = "local"   # or any of: gcp, az, k8s
  machine     = "m"       # medium. Or any of: l, xl, m+k80, xl+v100, ...
  image       = "ubuntu"  # or "nvidia", ...
  region      = "us-west" # or "us-east", "eu-west", ...
  disk_size   = -1        # GB. Default -1 for automatic
  spot        = 0         # auto-price. Default -1 to disable, or >0 for hourly USD limit
  parallelism = 1
  timeout     = 86400     # max 24h before forced termination

  environment = { GREETING = "Hello, world!" }
  storage {
    workdir = "."         # default blank (don't upload)
    output  = "results"   # default blank (don't download). Relative to workdir
    exclude = ["/.dvc/cache", "/results/tempfile", "*.pyc"]
  }
  script = <<-END
    #!/bin/bash

    # create output directory if needed
    mkdir -p results
    echo "$GREETING" | tee results/$(uuidgen)
    # read last result (in case of spot/preemptible instance recovery)
    if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
    EPOCH=$${EPOCH:-1}  # start from 1 if last result not found

    echo "(re)starting training loop from $EPOCH up to 3 epochs"
    for epoch in $(seq $EPOCH 3); do
      sleep 0.1
      echo "$epoch" | tee results/epoch.txt
    done
  END
  # or: script = file("example.sh")
}
output "logs" {
  value = try(join("\\n", iterative_task.example.logs), "")
}
"""

# Of the front page.
_FRONT = """
resource "iterative_task" "example" {
  cloud      = "local" # or any of: gcp, az, k8s
  machine    = "m"     # medium. Or any of: l, xl, m+k80, xl+v100, ...
  spot       = 0       # auto-price. Default -1 to disable, or >0 for hourly USD limit
  disk_size  = -1      # GB. Default -1 for automatic

  storage {
    workdir = "."       # default blank (don't upload)
    output  = "results" # default blank (don't download). Relative to workdir
  }
  script = <<-END
    #!/bin/bash

    # create output directory if needed
    mkdir -p results
    # read last result (in case of spot/preemptible instance recovery)
    if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
    EPOCH=$${EPOCH:-1}  # start from 1 if last result not found

    echo "(re)starting training loop from $EPOCH up to 3 epochs"
    for epoch in $(seq $EPOCH 3); do
      sleep 0.1
      echo "$epoch" | tee results/epoch.txt
    done
  END
}
output "logs" {
  value = try(join("\\n", iterative_task.example.logs), "")
}
"""

_LOOP = "(re)starting training loop from 1 up to 3 epochs"


@pytest.mark.parametrize("hcl", [_PAGE, _FRONT], ids=["page", "front"])
def test_whole_life(project: Project, hcl: str) -> None:
    project.write(hcl)
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
