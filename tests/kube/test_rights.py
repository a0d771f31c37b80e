"""The role of docs/kubernetes.md is enough, and all of it is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import clouds
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Transient
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube.accounts import Account
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

_OPTIONAL = {("list", "events"), ("watch", "pods")}  # as the page says


@pytest.fixture
def account(
    kit: KubernetesKit,
    kube_cluster: KubeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Account:
    made = Account(kit, kube_cluster.kubeconfig, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(made.file))
    return made


def _allowed(verb: str, group: str, resource: str) -> bool:
    from sojourn.clouds.k8s.api import Api
    from sojourn.clouds.k8s.kubeconfig import load
    from sojourn.clouds.k8s.rights import allowed

    return allowed(Api(load), verb, group, resource)


def test_the_role_is_enough(lab: Lab, account: Account) -> None:
    (lab.workdir / "data").write_text("mine")
    handle = lab.create("mkdir output; cat data > output/x; sleep 300")
    until(lambda: handle.status().state is sojourn.State.RUNNING)
    done = handle.exec(["cat", "/sojourn/workdir/data"])
    assert done.stdout == b"mine"
    handle.stop()
    handle.start()
    until(lambda: handle.status().ranks[0].attempt == 2)
    assert [item.id for item in sojourn.list_tasks()] == [handle.id]
    handle.events()
    handle.delete()
    assert lab.output() == {"x": "mine"}


def test_every_verb_of_every_rule_is_needed(lab: Lab, account: Account) -> None:
    """Without it, something that a task does is refused, and the error names the verb."""
    rules = account.rules()
    _whole_life(lab)
    needless = []
    for rule, resource, verb in _single(rules):
        account.set_rules(_without(rules, rule, resource, verb))
        group = rule["apiGroups"][0]
        until(lambda v=verb, g=group, r=resource: not _allowed(v, g, r))  # type: ignore[misc]
        refused = _refused(lab)
        if not re.search(rf"\b{verb} {resource}", refused):
            needless.append((verb, resource, refused))
        account.set_rules(rules)
        until(lambda v=verb, g=group, r=resource: _allowed(v, g, r))  # type: ignore[misc]
        for item in sojourn.list_tasks():
            item.delete(force=True, fetch=False)
    assert needless == []


def _single(rules: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, str]]:
    for rule in rules:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                if (verb, resource) not in _OPTIONAL:
                    yield rule, resource, verb


def _without(
    rules: list[dict[str, Any]], rule: dict[str, Any], resource: str, verb: str
) -> list[dict[str, Any]]:
    others = [each for each in rules if each is not rule]
    beside = [each for each in rule["resources"] if each != resource]
    verbs = [each for each in rule["verbs"] if each != verb]
    rest = [(beside, rule["verbs"]), ([resource], verbs)]
    return others + [{**rule, "resources": r, "verbs": v} for r, v in rest if r and v]


def _refused(lab: Lab) -> str:
    """What is said to somebody who may not do all of it."""
    try:
        _whole_life(lab)
    except AuthError as error:
        return str(error)
    return ""


def _whole_life(lab: Lab) -> None:
    """All that a task needs, as quickly as possible."""
    handle = lab.create("mkdir -p output; echo x > output/x; sleep 300")
    until(lambda: handle.status().state is sojourn.State.RUNNING)
    with suppress(Transient), closing(handle.connect(9)) as connection:  # nobody listens there
        connection.read()
    handle.interrupt(notice=False)
    handle.stop()
    handle.start()
    assert list(clouds.load(handle.cloud).tasks(Context()))  # a list of all clouds only warns
    handle.delete()
