"""Kubernetes: a Job for each rank, the store on a claim or in a bucket.

What does not belong here: anything about how a cluster is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s.about import ABOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud
    from sojourn.core.operators import MpiOperator
    from sojourn.core.task import Task

__all__ = ["ABOUT", "examine", "make_cloud", "make_mpi_operator", "role_for"]


def make_cloud() -> Cloud:
    """The cloud as this computer's configuration reaches it; asks nobody anything yet."""
    from sojourn.clouds.k8s.cloud import KubernetesCloud

    return KubernetesCloud()


def examine() -> Iterator[Finding]:
    """What there is to tell of the cluster; asks it, with little patience."""
    from sojourn.clouds.k8s.checkup import look
    from sojourn.kube.api import Api
    from sojourn.kube.kubeconfig import load

    yield from look(Api(load, patience=2.0))


def make_mpi_operator() -> MpiOperator:
    """The one of the cluster that this computer's configuration leads to."""
    from sojourn.clouds.k8s.operator import KubernetesMpiOperator
    from sojourn.kube.api import Api
    from sojourn.kube.kubeconfig import load

    return KubernetesMpiOperator(Api(load))


def role_for(tasks: Iterable[Task]) -> str:
    """The least Role of a user who runs these tasks; needs no cluster."""
    from sojourn.clouds.k8s.roles import role_text
    from sojourn.kube.kubeconfig import namespace_here

    return role_text(tasks, namespace_here())
