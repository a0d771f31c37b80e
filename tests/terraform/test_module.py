"""The module `modules/mpi`, by the real Terraform."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.hpl import HPL
from tests.terraform.project import Project

_MODULE = Path(__file__).parents[2] / "modules" / "mpi"


def _use(project: Project, **given: Any) -> None:
    arguments = "".join(
        f"  {name} = {value if str(value).startswith('terraform_data') else json.dumps(value)}\n"
        for name, value in given.items()
    )
    project.write(
        f"""
resource "terraform_data" "image" {{ input = "hpl:1" }}
module "hpl" {{
  source = {json.dumps(str(_MODULE))}
{arguments}}}
output "results" {{ value = module.hpl.results }}
output "state" {{ value = module.hpl.state }}
"""
    )
    project.init()


def test_by_default_it_is_for_kubernetes(project: Project) -> None:
    """With an image that is not known yet, nobody has to be asked for the plan."""
    (project.folder / "HPL.dat").write_text(HPL.format(count=1, ps="2", qs="2"))
    _use(
        project,
        image_id="terraform_data.image.output",
        path_to_file="HPL.dat",
        machine_type="n2-standard-4",
        mount_path="/home/nixuser/HPL.dat",
    )
    project.validate()
    said = project.plan(code=2).said
    for wanted in (
        r'cloud += "k8s"',
        r'region += "node\.kubernetes\.io/instance-type=n2-standard-4"',
        r'"slots" += "2"',
        r'"/home/nixuser/HPL\.dat" += <<-EOT',
        r"gang += true",
        r"parallelism += 2",
    ):
        assert re.search(wanted, said), wanted


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"runscript": "mpirun -np 6 xhpl"},
            "runscript asks for 6 processes, but num_workers x slots_per_worker = 4.",
        ),
        (
            {"num_workers": 3, "path_to_file": "HPL.dat"},
            "HPL.dat has a grid of P x Q = 4 processes, but num_workers x slots_per_worker = 6.",
        ),
    ],
)
def test_what_does_not_fit_together(project: Project, given: dict[str, Any], said: str) -> None:
    (project.folder / "HPL.dat").write_text(HPL.format(count=1, ps="2", qs="2"))
    _use(project, image_id="ubuntu", cloud="local", **given)
    assert said in project.plan(code=1).said


def test_a_whole_life(project: Project) -> None:
    (project.folder / "HPL.dat").write_text(HPL.format(count=1, ps="2", qs="2"))
    script = "head -1 HPL.dat; echo rank $SOJOURN_RANK of $SOJOURN_PARALLELISM"
    _use(
        project,
        image_id="ubuntu",
        cloud="local",
        path_to_file="HPL.dat",
        runscript=script,
    )
    project.apply()
    printed = "HPLinpack benchmark input file\nrank 0 of 2"
    assert project.output("results") == printed
    assert project.output("state") == "succeeded"
    written = project.folder / "results/hpl-benchmarks.txt"
    assert written.read_text() == f"{printed}\n"
    project.plan()
    project.destroy()
