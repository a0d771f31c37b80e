"""The module `modules/mpi` by the real Terraform, on a real cluster."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.k8s import names
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.kube import mpi_images
from tests.kube.fixtures import KubeCluster
from tests.support.hpl import HPL
from tests.terraform.conftest import home
from tests.terraform.project import Project

__all__ = ["home"]

_MODULE = Path(__file__).parents[2] / "modules" / "mpi"
_NAME = "hpl"
_INPUT = "/home/nixuser/HPL.dat"

pytestmark = pytest.mark.usefixtures("mpi_operator")


@pytest.fixture
def project(kit: KubernetesKit, home: Path, tmp_path: Path) -> Iterator[Project]:
    """An empty project, which has the environment that the cluster needs."""
    made = Project(tmp_path, home, f"terraform-{tmp_path.name}")
    try:
        yield made
    finally:
        made.close()


def _use(project: Project, grid: tuple[int, int]) -> None:
    p, q = grid
    (project.folder / "HPL.dat").write_text(HPL.format(count=1, ps=p, qs=q))
    given = {
        "container_name": _NAME,
        "image_id": mpi_images.MPI,
        "num_workers": 3,
        "slots_per_worker": 2,
        "path_to_file": "HPL.dat",
        "mount_path": _INPUT,
        "runscript": f"sed -n '11,12p' {_INPUT}; mpirun hostname",
    }
    arguments = "".join(f"  {name} = {json.dumps(value)}\n" for name, value in given.items())
    project.write(
        f"""
module "hpl" {{
  source = {json.dumps(str(_MODULE))}
{arguments}}}
output "results" {{ value = module.hpl.results }}
output "state" {{ value = module.hpl.state }}
"""
    )


def _launcher_log(cluster: KubeCluster, kit: KubernetesKit) -> str:
    """What `kubectl logs` of the launcher's pod shows: the log of its default container."""
    pods = kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")
    [launcher] = [pod for pod in pods if pod["spec"]["hostname"].endswith("launcher")]
    name, namespace = (launcher["metadata"][key] for key in ("name", "namespace"))
    shown = launcher["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
    return cluster.api.text(path, container=shown)


def test_a_whole_life_with_one_input_and_another(
    project: Project, kit: KubernetesKit, kube_cluster: KubeCluster
) -> None:
    for grid in ((2, 3), (3, 2)):
        _use(project, grid)
        project.init()
        project.apply()
        assert project.output("state") == "succeeded"
        written = (project.folder / "results" / f"{_NAME}.txt").read_text()
        assert written == _launcher_log(kube_cluster, kit)
        ps, qs, *hosts = written.splitlines()
        assert (ps.split()[0], qs.split()[0]) == tuple(map(str, grid))
        # Open MPI may warn of a race of its own, with a host's name in brackets.
        counted = Counter(host for host in hosts if not host.startswith("["))
        assert sorted(counted.values()) == [2, 2, 2]
    project.destroy()
