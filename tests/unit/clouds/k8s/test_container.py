"""`storage.container` on Kubernetes: a claim with a path, or the URL of a bucket."""

from __future__ import annotations

import pytest

from sojourn.clouds.k8s.container import is_bucket, place_of
from sojourn.clouds.k8s.pod import Place
from sojourn.core.errors import InvalidInput
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
