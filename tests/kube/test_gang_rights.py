"""The role for gangs of docs/kubernetes.md is enough, and all of it is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.core.errors import AuthError
from sojourn.core.gang import Mpi
from sojourn.kube.api import Api
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube import mpi_images
from tests.kube.accounts import Account, allowed, single, without
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

_ROLE = "sojourn-gangs"
_OF_ALL_GANGS = ("services", "networkpolicies")
_GANG: dict[str, Any] = {"gang": True, "parallelism": 2}


@pytest.fixture
def account(
    kit: KubernetesKit,
    kube_cluster: KubeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Account:
    made = Account(kit, kube_cluster.kubeconfig, tmp_path, gangs=True)
    monkeypatch.setenv("KUBECONFIG", str(made.file))
    return made


def _whole_life(lab: Lab, **fields: Any) -> None:
    """As short as it can be."""
    lab.create("sleep 300", **fields).delete(force=True, fetch=False)


def _needless(lab: Lab, account: Account, resources: tuple[str, ...], **fields: Any) -> list[str]:
    """What is not needed for a task with these fields."""
    rules = account.rules(_ROLE)
    _whole_life(lab, **fields)
    found = []
    for rule, resource, verb in single(rules):
        if resource not in resources:
            continue
        asked = (verb, rule["apiGroups"][0], resource)
        account.set_rules(without(rules, rule, resource, verb), _ROLE)
        until(lambda asked=asked: not allowed(*asked))  # type: ignore[misc]
        refused = ""
        try:
            _whole_life(lab, **fields)
        except AuthError as error:
            refused = str(error)
        if not re.search(rf"\b{verb} {resource}", refused):
            found.append(f"{verb} {resource}: {refused}")
        account.set_rules(rules, _ROLE)
        until(lambda asked=asked: allowed(*asked))  # type: ignore[misc]
        for item in sojourn.list_tasks():
            item.delete(force=True, fetch=False)
    return found


def test_the_role_for_gangs_is_enough_and_needed(lab: Lab, account: Account) -> None:
    assert _needless(lab, account, _OF_ALL_GANGS, **_GANG) == []


def test_the_role_for_mpi_is_enough_and_needed(
    lab: Lab, account: Account, mpi_operator: Api
) -> None:
    resources = tuple(resource for _, resource, _ in single(account.rules(_ROLE)))
    others = tuple(each for each in resources if each != "services")
    given: dict[str, Any] = {"mpi": Mpi(), "parallelism": 2, "image": mpi_images.MPI}
    assert _needless(lab, account, others, **given) == []


def test_others_do_not_need_it(lab: Lab, account: Account) -> None:
    account.set_rules([], _ROLE)
    until(lambda: not allowed("create", "", "services"))
    _whole_life(lab, parallelism=2)
