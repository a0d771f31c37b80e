"""The whole life of a task on Kubernetes, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.clouds import k8s_kit
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.kit import in_use
from tests.kube import layout
from tests.kube.in_use import cluster_in_use
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.support.waiting import until
from tests.terraform import pages
from tests.terraform.project import HEAD, Project
from tests.terraform.runner_life import live_as_runner

pytestmark = pytest.mark.kube


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesKit]:
    with in_use(k8s_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def on_k8s(kit: KubernetesKit, project: Project) -> Iterator[Project]:
    for name, value in kit.environment().items():
        if name.startswith(("KUBE", "SOJOURN_")) or name == "XDG_CACHE_HOME":
            project.environment[name] = value
    node = kit.api.list("Node")[0]["metadata"]["name"]
    kit.api.merge("Node", node, {"metadata": {"labels": {"foo": "bar", "goo": "baz"}}})
    yield project
    kit.api.merge("Node", node, {"metadata": {"labels": {"foo": None, "goo": None}}})


def _pages(forge: SimForge, *, gpus: bool) -> dict[str, str]:
    """Each as it is written, but for the repository."""
    runner, machine = "runner_kubernetes", "machine_kubernetes"
    read = pages.uncommented if gpus else pages.page
    texts = {machine: read(machine), runner: read(runner)}
    texts |= {} if gpus else {name: pages.on_cloud(name, "k8s") for name in ("task", "front")}
    return {n: t.replace("https://github.com/iterative/cml", forge.repo) for n, t in texts.items()}


def _write(project: Project, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        head = "" if "required_providers" in text else HEAD
        project.write(head + text, f"{name}/main.tf")
    calls = [f'module "{name}" {{\n  source = "./{name}"\n}}\n' for name in texts]
    (project.folder / "main.tf").write_text("".join(calls))
    project.init()


def test_every_page_of_kubernetes_is_applied_as_it_is_written(
    kit: KubernetesKit, on_k8s: Project
) -> None:
    with served(SimGitHub(), layout.GATEWAY) as forge:
        on_k8s.environment["CML_TOKEN"] = forge.token
        for name in ("task", "front"):
            (on_k8s.folder / "main.tf").write_text(pages.on_cloud(name, "k8s"))
            planned = on_k8s.sojourn("run", "--dry-run", "main.tf").out
            assert "Dry run: nothing created." in planned
        _write(on_k8s, _pages(forge, gpus=True))
        assert "2 to add, 0 to change, 0 to destroy" in on_k8s.plan(code=2).said
        _write(on_k8s, _pages(forge, gpus=False))
        on_k8s.apply()
        assert len(forge.work.runners) == 1
        tasks = [own for own, values in on_k8s.known().items() if "script" in values]
        assert len(tasks) == 2
        first = "(re)starting training loop from 1 up to 1337 epochs"
        for own in tasks:
            until(lambda own=own: first in on_k8s.sojourn("logs", own).out, 120)  # type: ignore[misc]
        on_k8s.destroy()
        assert forge.work.runners == {}
    assert kit.leaks() == []


def test_whole_life(kit: KubernetesKit, on_k8s: Project) -> None:
    project = on_k8s
    text = pages.shortened(pages.on_cloud("task", "k8s"))
    # Images of containers have no uuidgen.
    text = text.replace('"us-west"', '"foo=bar,goo=baz"').replace("$(uuidgen)", "greeting")
    project.write(text)
    project.init()
    assert "1 to add, 0 to change, 0 to destroy" in project.plan(code=2).out
    assert kit.leaks() == []
    project.apply()
    project.until_state("succeeded")
    task = project.task()
    assert task["status"] == {"running": 0, "succeeded": 1, "failed": 0}
    assert "(re)starting training loop from 1 up to 3 epochs" in task["logs"][0]
    assert any("SuccessfulCreate" in event for event in task["events"])
    project.plan(code=0)
    project.destroy()
    assert kit.leaks() == []
    results = project.folder / "results"
    assert (results / "greeting").read_text() == "Hello, world!\n"
    assert (results / "epoch.txt").read_text() == "3\n"


def test_a_machine(kit: KubernetesKit, on_k8s: Project) -> None:
    address = "iterative_machine.machine"
    text = pages.page("machine_kubernetes")
    selector = '  kubernetes_node_selector = { foo = "bar" }\n}'
    (on_k8s.folder / "main.tf").write_text(text.rstrip().removesuffix("}") + selector)
    on_k8s.init()
    on_k8s.apply()
    made = on_k8s.task(address)
    assert (made["state"], made["cloud"]) == ("running", "kubernetes")
    assert made["instance_ip"]
    assert on_k8s.sojourn("exec", made["id"], "--", "echo", "here").out == "here\n"
    on_k8s.plan(code=0)
    on_k8s.sojourn("interrupt", made["id"], "--no-notice")
    until(lambda: _address(on_k8s, address) not in ("", made["instance_ip"]), 100)
    on_k8s.plan(code=0)
    on_k8s.destroy()
    assert kit.leaks() == []


def _address(project: Project, address: str) -> str:
    return str(project.refreshed(address)["instance_ip"])


def test_a_runner(kit: KubernetesKit, on_k8s: Project) -> None:
    with served(SimGitHub(), layout.GATEWAY) as forge:
        more = 'kubernetes_readiness_command = "true"'
        live_as_runner(on_k8s, forge, "kubernetes", more)
    assert kit.leaks() == []


_OPERATOR = """
resource "iterative_mpi_operator" "operator" {
  ARGUMENTS
}
"""


@pytest.mark.alone
def test_mpi_operator(kit: KubernetesKit, on_k8s: Project) -> None:
    """Installed, found again, moved, imported, kept while it is used, and removed."""
    cluster_in_use().must_be_ours()
    address = "iterative_mpi_operator.operator"
    on_k8s.sojourn("mpi", "uninstall", "--force")
    on_k8s.write(_OPERATOR.replace("ARGUMENTS", ""))
    on_k8s.init()
    assert "1 to add, 0 to change, 0 to destroy" in on_k8s.plan(code=2).out
    on_k8s.apply()
    made = on_k8s.task(address)
    assert (made["id"], made["namespace"]) == ("mpi-operator", "mpi-operator")
    assert (made["image"], made["version"]) == ("mpioperator/mpi-operator:0.8.2", "0.8.2")
    on_k8s.plan(code=0)
    on_k8s.run("state", "rm", address)
    on_k8s.run("import", "-no-color", address, "mpi-operator")
    on_k8s.plan(code=0)
    on_k8s.write(_OPERATOR.replace("ARGUMENTS", f'namespace = "{kit.api.namespace}"'))
    assert "must be replaced" in on_k8s.plan(code=2).out
    on_k8s.apply()
    assert on_k8s.task(address)["id"] == kit.api.namespace
    _use(kit)
    refused = on_k8s.destroy(code=1)
    assert f"in use by {kit.api.namespace}/job" in refused.said
    kit.api.delete("MPIJob", "job")
    until(lambda: kit.api.find("MPIJob", "job") is None)
    on_k8s.sojourn("mpi", "status")
    on_k8s.destroy()
    assert on_k8s.sojourn("mpi", "status", code=1).out == "mpi-operator is not installed\n"
    until(lambda: kit.leaks() == [], 60)


def _use(kit: KubernetesKit) -> None:
    pod = {"containers": [{"name": "main", "image": "localhost/mpi:1"}]}
    replicas = {"replicas": 1, "template": {"spec": pod}}
    spec = {
        "mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas},
        "runPolicy": {"suspend": True},
    }
    body = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": spec}
    kit.api.create("MPIJob", {**body, "metadata": {"name": "job"}})
