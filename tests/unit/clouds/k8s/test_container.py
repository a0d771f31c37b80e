"""`storage.container` on Kubernetes: a claim with a path, or the URL of a bucket."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.k8s import cloud as module
from sojourn.clouds.k8s.cloud import KubernetesCloud
from sojourn.clouds.k8s.container import is_bucket, place_of
from sojourn.clouds.k8s.pod import Place
from sojourn.core.errors import Conflict, InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.task import Storage, Task

_ID = TaskId.deterministic("test")


def _place(container: str, **options: str) -> Place:
    storage = Storage(container=container, container_opts=options)
    return place_of(_ID, Task(script="#!/bin/sh\n", storage=storage))


def test_claims() -> None:
    assert _place("") == Place(claim=str(_ID), folder=str(_ID))
    assert _place("data") == Place(claim="data", folder=str(_ID))
    assert _place("data/") == Place(claim="data", folder="")
    assert _place("data/a/b") == Place(claim="data", folder="a/b")
    assert _place("my.data-1/a/b/") == Place(claim="my.data-1", folder="a/b")


def test_buckets() -> None:
    assert _place("s3://bucket") == Place(url=f"s3://bucket/{_ID}")
    assert _place("gs://bucket/a/", token="x") == Place(url=f"gs://bucket/a/{_ID}")
    assert is_bucket("az://x")
    assert not is_bucket("data/x")


@pytest.mark.parametrize(
    "container",
    [
        "Data",
        "-data",
        "data/../x",
        "data/./x",
        "data/a//x",
        "data/a b",
        "data/é",
        "ftp://x",
        "s3://",
        "s3:///x",
        "s3://a b",
        "/data",
        "data\n",
        "..",
        "data/..",
    ],
)
def test_refused(container: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _place(container)
    assert caught.value.path == "storage.container"


def test_options_are_for_buckets() -> None:
    with pytest.raises(InvalidInput) as caught:
        _place("data", region="x")
    assert caught.value.path == "storage.container_opts"


class _Namespace:
    """A namespace with the claim `data` and one task."""

    namespace = "mine"

    def __init__(self, *_: object) -> None:
        pass

    def find(self, kind: str, name: str) -> Any:
        return {"metadata": {"name": name}}

    def list(self, kind: str, labels: str) -> list[Any]:
        return [{"metadata": {"name": str(_ID)}}]


@pytest.mark.parametrize(
    ("there", "wanted", "refused"),
    [
        ("data/x", "data/x/", True),
        ("data/x", "data/x/store", True),
        ("data/x/y", "data/x", True),
        ("data/", "data/x", True),
        ("data", "data/", True),
        ("data/", "data", True),
        ("data/x", "data/xy", False),
        ("data", "data", False),
        ("data/x", "other/x", False),
        ("s3://data/x", "data/x", False),
    ],
)
def test_a_folder_that_encloses_another_tasks_or_is_inside_is_refused(
    monkeypatch: pytest.MonkeyPatch, there: str, wanted: str, refused: bool
) -> None:
    monkeypatch.setattr(module, "Api", _Namespace)
    cloud = KubernetesCloud()
    monkeypatch.setattr(cloud, "_place", {_ID: _place(there)}.get)
    task = Task(script="#!/bin/sh\n", storage=Storage(container=wanted))
    place = place_of(TaskId.deterministic("trial"), task)
    if refused:
        with pytest.raises(Conflict, match=f"overlaps with that of the task {_ID}"):
            cloud._check_claim(place, task)
    else:
        cloud._check_claim(place, task)
