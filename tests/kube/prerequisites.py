"""What a cluster starts from: builds it, or says why there can be no cluster here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tests.kube import binaries, golang, images, mpi_images, mpi_operator, packages, places

__all__ = ["KUBECONFIG", "Say", "build", "unavailable"]

KUBECONFIG = "SOJOURN_TEST_KUBECONFIG"  # the variable that leads to another cluster

Say = Callable[[str], None]


def build(say: Say) -> None:
    """What was built before is not built again."""
    with places.locked("build"):
        if packages.missing():
            say(f"Installing {', '.join(packages.missing())}")
            packages.install()
        if not binaries.built():
            say("Building Kubernetes (10 minutes or more)")
            binaries.build()
        if not mpi_operator.built():
            say("Building mpi-operator (4 minutes or more)")
            mpi_operator.build()
        golang.forget()
        if not images.built():
            say("Building images")
            images.build()
        if not mpi_images.built():
            say("Building images of MPI")
            mpi_images.build()


def unavailable() -> str | None:
    """Why no cluster can be started here, and what to do about it."""
    reason = _reason()
    return f"{reason}, or set {KUBECONFIG} to use another cluster" if reason else None


def _reason() -> str | None:
    if not sys.platform.startswith("linux"):
        return "a Kubernetes cluster needs Linux: run the tests there"
    if os.geteuid() != 0:
        return "a Kubernetes cluster needs root: run the tests with sudo"
    if not all(each.built() for each in (binaries, mpi_operator, images, mpi_images)):
        return "Kubernetes is not built: run `make kube`"
    if packages.missing():
        return f"programs are missing: run apt-get install {' '.join(packages.missing())}"
    return None
