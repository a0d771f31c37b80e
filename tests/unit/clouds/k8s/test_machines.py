"""Machine types, and the nodes that have them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.clouds.k8s.machines import (
    GPU,
    SPOT_LABELS,
    Amounts,
    node_affinity,
    node_selector,
    parse_machine,
    tolerations,
)
from sojourn.core.errors import InvalidInput

_T4 = Amounts(4, 16000, "nvidia-tesla-t4", 1)


@pytest.mark.parametrize(
    ("text", "cpu", "memory", "accelerator", "count"),
    [
        ("2-500", 2, 500, "", 0),
        ("16-64000+NVIDIA-A100-SXM4-80GB*2", 16, 64000, "NVIDIA-A100-SXM4-80GB", 2),
    ],
)
def test_amounts(text: str, cpu: int, memory: int, accelerator: str, count: int) -> None:
    assert parse_machine(text) == Amounts(cpu, memory, accelerator, count)


@pytest.mark.parametrize(
    ("text", "cpu", "gibibytes", "accelerator", "count"),
    [
        ("s", 1, 1, "", 0),
        ("m", 8, 32, "", 0),
        ("l", 32, 128, "", 0),
        ("xl", 64, 256, "", 0),
        ("m+t4", 4, 16, "nvidia-tesla-t4", 1),
        ("m+k80", 4, 64, "nvidia-tesla-k80", 1),
        ("l+k80", 32, 512, "nvidia-tesla-k80", 8),
        ("xl+k80", 64, 768, "nvidia-tesla-k80", 16),
        ("m+v100", 8, 64, "nvidia-tesla-v100", 1),
        ("l+v100", 32, 256, "nvidia-tesla-v100", 4),
        ("xl+v100", 64, 512, "nvidia-tesla-v100", 8),
    ],
)
def test_sizes_are_in_gib(
    text: str, cpu: int, gibibytes: int, accelerator: str, count: int
) -> None:
    assert parse_machine(text) == Amounts(cpu, gibibytes, accelerator, count, "Gi")


@given(st.integers(1, 999), st.integers(1, 10**6), st.integers(1, 16))
def test_any_amounts(cpu: int, memory: int, count: int) -> None:
    assert parse_machine(f"{cpu}-{memory}") == Amounts(cpu, memory)
    assert parse_machine(f"{cpu}-{memory}+gpu*{count}") == Amounts(cpu, memory, "gpu", count)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "huge",
        "t2.micro",
        "0-1000",
        "1-0",
        "1",
        "1-1000+t4",
        "1-1000+t4*0",
        "1-1000+*1",
        "1-1000 ",
        "-1-5",
        "٣-1000",
        "1-1000\n",
        "1-1000+t4*1*1",
        "1.5-1000",
    ],
)
def test_refused_sizes(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_machine(text)
    assert caught.value.path == "machine"


def test_node_selectors() -> None:
    assert node_selector("foo=bar,goo=baz") == {"foo": "bar", "goo": "baz"}
    assert node_selector("a.b/c=d, e=") == {"a.b/c": "d", "e": ""}
    for region in ("us-west", "us-east", "eu-north", "eu-west", ""):
        assert node_selector(region) == {}
    for region in ("us-west-1", "a", "a=b,", "a=b c", "=b", "a=b,a=c", "a!=b"):
        with pytest.raises(InvalidInput) as caught:
            node_selector(region)
        assert caught.value.path == "region"


def _terms(amounts: Amounts, *, spot: bool) -> list[dict[str, list[str]]]:
    affinity: dict[str, Any] = node_affinity(amounts, spot=spot)
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert all(
        item["operator"] == "In"
        for t in required["nodeSelectorTerms"]
        for item in t["matchExpressions"]
    )
    return [
        {item["key"]: item["values"] for item in term["matchExpressions"]}
        for term in required["nodeSelectorTerms"]
    ]


def test_any_node_does_unless_something_is_asked_for() -> None:
    assert node_affinity(Amounts(1, 1), spot=False) == {}


def test_spot_nodes_are_found_by_any_mark() -> None:
    assert _terms(Amounts(1, 1), spot=True) == [{key: [value]} for key, value in SPOT_LABELS]


def test_gpus_are_found_by_any_label() -> None:
    terms = _terms(_T4, spot=False)
    assert terms[:3] == [
        {"accelerator": ["nvidia-tesla-t4"]},
        {"cloud.google.com/gke-accelerator": ["nvidia-tesla-t4"]},
        {"k8s.amazonaws.com/accelerator": ["nvidia-tesla-t4"]},
    ]
    assert "Tesla-T4" in terms[3]["nvidia.com/gpu.product"]
    assert _terms(Amounts(1, 1, "A100", 1), spot=False)[3] == {"nvidia.com/gpu.product": ["A100"]}


def test_gpus_on_spot_nodes_have_a_label_of_each_kind() -> None:
    terms = _terms(_T4, spot=True)
    assert len(terms) == 4 * len(SPOT_LABELS)
    assert all(len(term) == 2 for term in terms)
    assert len({tuple(sorted(term)) for term in terms}) == len(terms)


def test_tolerations() -> None:
    plain = tolerations(Amounts(1, 1), spot=False)
    assert {item["key"] for item in plain} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert all(item["effect"] == "NoExecute" and item["tolerationSeconds"] <= 60 for item in plain)
    more = tolerations(_T4, spot=True)[2:]
    assert more == [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in (GPU, "cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority")
    ]
