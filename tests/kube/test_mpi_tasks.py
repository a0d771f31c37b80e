"""Tasks with `mpi`: MPIJobs of a real mpi-operator, with real Open MPI."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

import sojourn
from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.api import Api
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab, log_of
from tests.kube import mpi_images
from tests.support.waiting import until

_RANKS, _SLOTS = 3, 2

pytestmark = pytest.mark.usefixtures("mpi_operator")


def _create(lab: Lab, script: str, **more: Any) -> sojourn.Handle:
    given = {"parallelism": _RANKS, "mpi": Mpi(_SLOTS), "image": mpi_images.MPI, **more}
    return lab.create(script, **given)


def _hosts(id: object) -> Counter[str]:
    """Where processes run, if all machines have as many as they have slots."""
    machines = [f"{id}-launcher", *(f"{id}-worker-{number}" for number in range(_RANKS - 1))]
    return Counter({machine: _SLOTS for machine in machines})


@pytest.mark.parametrize("image", [mpi_images.MPI, mpi_images.MPI_AS_USER])
def test_processes_run_on_all_machines(lab: Lab, image: str) -> None:
    """Without any option; for Open MPI 5, a host file that is not found runs all on the first."""
    (lab.workdir / "data").write_text("mine")
    handle = _create(lab, "cat data; mkdir -p output; mpirun hostname | tee output/x", image=image)
    ended = handle.wait()
    lines = log_of(handle)
    assert ended.status is sojourn.State.SUCCEEDED, lines
    assert lines[0] == "mine"
    assert Counter(lines[1:]) == _hosts(handle.id)
    handle.delete()
    assert Counter(lab.output()["x"].split()) == _hosts(handle.id)
