"""Machine types as amounts of CPU, memory and GPUs, and the nodes that have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

from sojourn.core.errors import InvalidInput

__all__ = [
    "GPU",
    "SPOT_LABELS",
    "Amounts",
    "nearby",
    "node_affinity",
    "node_selector",
    "parse_machine",
    "preferred_affinity",
    "tolerations",
]


@dataclass(frozen=True)
class Amounts:
    """What a machine may use: CPUs, memory in a unit of Kubernetes, and GPUs."""

    cpu: int
    memory: int
    accelerator: str = ""
    count: int = 0
    unit: str = "M"


def _size(cpu: int, gibibytes: int, accelerator: str = "", count: int = 0) -> Amounts:
    return Amounts(cpu, gibibytes, accelerator, count, "Gi")


_T4, _K80, _V100 = "nvidia-tesla-t4", "nvidia-tesla-k80", "nvidia-tesla-v100"
_SIZES = {
    "s": _size(1, 1),
    "m": _size(8, 32),
    "l": _size(32, 128),
    "xl": _size(64, 256),
    "m+t4": _size(4, 16, _T4, 1),
    "m+k80": _size(4, 64, _K80, 1),
    "l+k80": _size(32, 512, _K80, 8),
    "xl+k80": _size(64, 768, _K80, 16),
    "m+v100": _size(8, 64, _V100, 1),
    "l+v100": _size(32, 256, _V100, 4),
    "xl+v100": _size(64, 512, _V100, 8),
}
_FORM = re.compile(
    r"(?P<cpu>\d+)-(?P<memory>\d+)(\+(?P<accelerator>[A-Za-z0-9][\w.-]*)\*(?P<count>\d+))?",
    re.ASCII,
)
_SELECTOR = re.compile(r"(?P<key>[\w./-]+)=(?P<value>[\w.-]*)", re.ASCII)
# Names of regions in other clouds: a task that does not choose its nodes has one of them.
_REGIONS = ("us-west", "us-east", "eu-north", "eu-west")
GPU = "nvidia.com/gpu"
# Where nodes say which GPUs they have: by hand as the old provider wanted it, GKE and EKS.
_ACCELERATOR_LABELS = (
    "accelerator",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
# What NVIDIA's GPU operator calls them.
_PRODUCT_LABEL = "nvidia.com/gpu.product"
_PRODUCTS = {
    "nvidia-tesla-t4": ("Tesla-T4", "NVIDIA-T4"),
    "nvidia-tesla-k80": ("Tesla-K80",),
    "nvidia-tesla-v100": (
        "Tesla-V100-SXM2-16GB",
        "Tesla-V100-SXM2-32GB",
        "Tesla-V100-SXM3-32GB",
        "Tesla-V100-PCIE-16GB",
        "Tesla-V100-PCIE-32GB",
    ),
}
# How providers mark nodes that may vanish, and keep others from them.
SPOT_LABELS = (
    ("cloud.google.com/gke-spot", "true"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("karpenter.sh/capacity-type", "spot"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
_SPOT_TAINTS = ("cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority")
_ZONE = "topology.kubernetes.io/zone"
# How soon a pod leaves a node that no longer answers; Kubernetes itself waits for 300 seconds.
_LEAVES_AFTER = 30


def parse_machine(text: str) -> Amounts:
    """Read `{cpu}-{memory}[+{accelerator}*{count}]`, or one of the sizes."""
    if text in _SIZES:
        return _SIZES[text]
    found = _FORM.fullmatch(text)
    if not found or not int(found["cpu"]) or not int(found["memory"]):
        raise InvalidInput(
            "machine",
            "must be {cpu}-{memory in MB}[+{accelerator}*{count}], such as "
            f"4-16000+nvidia-tesla-t4*1, or one of {', '.join(_SIZES)}, got {text!r}",
        )
    count = int(found["count"] or 0)
    if found["accelerator"] and not count:
        raise InvalidInput("machine", f"the number of GPUs must be at least 1, got {text!r}")
    return Amounts(int(found["cpu"]), int(found["memory"]), found["accelerator"] or "", count)


def node_selector(region: str) -> dict[str, str]:
    """The labels that nodes must have: `a=b,c=d`."""
    if not region or region in _REGIONS:
        return {}
    selected = {}
    for part in region.split(","):
        found = _SELECTOR.fullmatch(part.strip())
        if not found:
            raise InvalidInput(
                "region",
                f"must be a node selector such as 'label=value,other=value', got {region!r}",
            )
        if found["key"] in selected:
            raise InvalidInput("region", f"label {found['key']} must be given once, got {region!r}")
        selected[found["key"]] = found["value"]
    return selected


def node_affinity(amounts: Amounts, *, spot: bool) -> dict[str, Any]:
    """Nodes with these GPUs, and spot ones if asked for, by any of the labels in use."""
    terms = _terms(amounts, spot=spot)
    if terms == [[]]:
        return {}
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def preferred_affinity(amounts: Amounts, region: str, *, spot: bool) -> dict[str, Any]:
    """The same nodes, and those of the region, if there are any."""
    here = [_is(key, value) for key, value in node_selector(region).items()]
    terms = [[*term, *here] for term in _terms(amounts, spot=spot)]
    wanted = [{"weight": 1, "preference": {"matchExpressions": term}} for term in terms if term]
    if not wanted:
        return {}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wanted}}


def nearby(labels: dict[str, str]) -> dict[str, Any]:
    """Rather in the zone of pods with these labels, but anywhere if there is no room."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": _ZONE}
    wanted = {"weight": 100, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wanted]}}


def _terms(amounts: Amounts, *, spot: bool) -> list[list[dict[str, Any]]]:
    gpus = _gpu_terms(amounts.accelerator) if amounts.accelerator else [[]]
    spots = [[_is(key, value)] for key, value in SPOT_LABELS] if spot else [[]]
    return [[*one, *other] for one, other in product(gpus, spots)]


def _gpu_terms(accelerator: str) -> list[list[dict[str, Any]]]:
    terms = [[_is(label, accelerator)] for label in _ACCELERATOR_LABELS]
    return [*terms, [_is(_PRODUCT_LABEL, *_PRODUCTS.get(accelerator, (accelerator,)))]]


def _is(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def tolerations(amounts: Amounts, *, spot: bool) -> list[dict[str, Any]]:
    """What keeps others away from GPUs and spot nodes, and when to leave a node that is lost."""
    lost = [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _LEAVES_AFTER,
        }
        for state in ("not-ready", "unreachable")
    ]
    kept = [*([GPU] if amounts.count else []), *(_SPOT_TAINTS if spot else ())]
    return [*lost, *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in kept)]
