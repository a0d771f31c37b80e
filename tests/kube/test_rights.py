"""The role of docs/kubernetes.md is enough, and all of it is needed."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml

import sojourn
from sojourn import clouds
from sojourn.clouds.k8s.roles import role_text
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Transient
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube.accounts import Account, allowed, single, without
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until
from tests.terraform import pages

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


def test_the_printed_role_is_enough(lab: Lab, account: Account) -> None:
    task = sojourn.Task("#!/bin/sh", cloud="k8s")
    account.set_rules(yaml.safe_load(role_text([task], "here"))["rules"])
    until(lambda: not allowed("create", "", "pods/portforward"))
    handle = lab.create("mkdir output; echo x > output/x")
    until(lambda: handle.status().state is sojourn.State.SUCCEEDED)
    handle.events()
    handle.delete()
    assert lab.output() == {"x": "x\n"}


def test_what_the_role_of_the_old_page_lacks_is_named_before_anything_is_made(
    lab: Lab, account: Account
) -> None:
    [role] = [each for each in pages.role() if each["kind"] == "Role"]
    account.set_rules(role["rules"])
    until(lambda: not allowed("create", "", "secrets"))
    with pytest.raises(AuthError) as caught:
        lab.create("true")
    for right in ("create secrets", "get configmaps", "create pods/exec"):
        assert right in caught.value.message
    assert "create pods," not in caught.value.message
    assert "sojourn doctor --role k8s" in caught.value.hint


def test_every_verb_of_every_rule_is_needed(lab: Lab, account: Account) -> None:
    """Without it, something that a task does is refused, and the error names the verb."""
    rules = account.rules()
    _whole_life(lab)
    needless = []
    for rule, resource, verb in single(rules):
        if (verb, resource) in _OPTIONAL:
            continue
        account.set_rules(without(rules, rule, resource, verb))
        group = rule["apiGroups"][0]
        until(lambda v=verb, g=group, r=resource: not allowed(v, g, r))  # type: ignore[misc]
        refused = _refused(lab)
        if not re.search(rf"\b{verb} {resource}", refused):
            needless.append((verb, resource, refused))
        account.set_rules(rules)
        until(lambda v=verb, g=group, r=resource: allowed(v, g, r))  # type: ignore[misc]
        for item in sojourn.list_tasks():
            item.delete(force=True, fetch=False)
    assert needless == []


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
