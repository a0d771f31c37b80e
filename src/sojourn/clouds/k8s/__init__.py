"""Kubernetes: a Job for each rank, the store on a claim or in a bucket.

What does not belong here: anything about how a cluster is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s.about import ABOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud
    from sojourn.core.operators import MpiOperator
    from sojourn.core.task import Task
    from sojourn.kube.kubeconfig import Asked

__all__ = ["ABOUT", "examine", "make_cloud", "make_mpi_operator", "role_for"]


def make_cloud(name: str, settings: Mapping[str, str]) -> Cloud:
    """The cloud as settings, or this computer's configuration, reach it; asks nobody anything."""
    from sojourn.clouds.k8s.cloud import KubernetesCloud

    return KubernetesCloud(_asked(settings), name)


def examine(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What there is to tell of the cluster; asks it, with little patience."""
    from sojourn.clouds.k8s.checkup import look
    from sojourn.kube.api import Api

    yield from look(Api(_asked(settings).login, patience=2.0))


def make_mpi_operator(settings: Mapping[str, str]) -> MpiOperator:
    """The one of the cluster."""
    from sojourn.clouds.k8s.operator import KubernetesMpiOperator
    from sojourn.kube.api import Api

    return KubernetesMpiOperator(Api(_asked(settings).login))


def role_for(tasks: Iterable[Task], settings: Mapping[str, str]) -> str:
    """The least Role of a user who runs these tasks; needs no cluster."""
    from sojourn.clouds.k8s.roles import role_text

    return role_text(tasks, _asked(settings).namespace_here())


def _asked(settings: Mapping[str, str]) -> Asked:
    from sojourn.kube.kubeconfig import Asked

    return Asked(
        settings.get("context", ""), settings.get("namespace", ""), settings.get("kubeconfig", "")
    )
