"""What the cloud says of itself; its modules need it, too."""

from __future__ import annotations

from sojourn.core.about import About, MachineArgument, Setting

__all__ = ["ABOUT"]

ABOUT = About(
    title="Kubernetes",
    aliases=("kubernetes",),
    extra="k8s",
    packages=("httpx", "websockets"),
    modules=("httpx", "websockets"),
    variables=(
        "KUBECONFIG",
        "KUBECONFIG_DATA",
        "KUBERNETES_CONFIGURATION",
        "KUBERNETES_SERVICE_HOST",
    ),
    files=("~/.kube/config",),
    options=(
        ("agent_image", "image of the agent's container, with Python 3.10 or later"),
        ("pod", "YAML with `metadata` and `spec`, merged into pods as `kubectl patch` does"),
        ("queue", "queue of Volcano, which starts all machines of a gang together"),
        ("storage_class", "storage class of the task's claim (default: the cluster's)"),
    ),
    settings=(
        Setting("context", "context of the kubeconfig"),
        Setting("namespace", "namespace of tasks"),
        Setting("kubeconfig", "kubeconfig file", path=True),
        Setting("region", "labels of the nodes to run on, of tasks that name none"),
    ),
    mpi_operator=True,
    role=True,
    machine_arguments=(
        MachineArgument(
            "kubernetes_node_selector", "region", "Labels of the nodes to run on.", pairs=True
        ),
        MachineArgument(
            "kubernetes_readiness_command",
            "",
            "No effect: machines are ready when they answer, runners when they are online.",
        ),
    ),
)
