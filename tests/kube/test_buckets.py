"""A bucket as the store: laptop and pods reach it by themselves, and nothing is left in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

import sojourn
from sojourn.core.errors import InvalidInput
from tests.contract.clouds.lab import Lab, log_of
from tests.kube import layout
from tests.kube.fixtures import KubeCluster
from tests.support.seaweed import KEY, SECRET, Seaweed
from tests.support.waiting import until


@pytest.fixture
def server(kube_cluster: KubeCluster) -> Iterator[Seaweed]:
    """On this computer, at an address that pods reach."""
    if not kube_cluster.ours:
        pytest.skip("pods of another cluster cannot reach a server of this computer")
    with Seaweed(host=layout.GATEWAY) as started:
        yield started


def _contents(server: Seaweed, bucket: str) -> list[str]:
    found = obstore.list(S3Store(bucket, **server.options())).collect()
    return [str(item["path"]) for item in found]


def _storage(server: Seaweed, lab: Lab, bucket: str) -> sojourn.Storage:
    options: dict[str, Any] = {
        "endpoint": server.url,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "us-east-1",
    }
    return sojourn.Storage(
        workdir=str(lab.workdir),
        output="output",
        container=f"{bucket}/mine",
        container_opts=options,
    )


def test_two_machines_with_a_bucket(lab: Lab, server: Seaweed) -> None:
    """Which no claim of the default storage class could carry."""
    bucket = server.address().url
    name = bucket.removeprefix("s3://")
    obstore.put(S3Store(name, **server.options()), "mine/foreign", b"stays")
    (lab.workdir / "data").write_text("mine")
    script = """
    mkdir -p output; cat data > output/$SOJOURN_RANK; echo $SOJOURN_ATTEMPT >> output/$SOJOURN_RANK
    echo up; [ $SOJOURN_RANK = 1 ] || [ $SOJOURN_ATTEMPT = 2 ] || sleep 300
    """
    handle = lab.create(script, parallelism=2, storage=_storage(server, lab, bucket))
    until(lambda: log_of(handle).count("up") == 2)
    handle.interrupt(rank=0)
    assert handle.wait().status is sojourn.State.SUCCEEDED
    assert SECRET not in str(lab.events)
    handle.delete()
    assert {path: text[:4] for path, text in lab.output().items()} == {"0": "mine", "1": "mine"}
    assert _contents(server, name) == ["mine/foreign"]


@pytest.mark.parametrize(
    ("changed", "field", "told"),
    [
        ({"secret_access_key": "wrong"}, "storage.container_opts", "denied"),
        ({"nonsense": "x"}, "storage.container_opts", "nonsense"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(
    lab: Lab, server: Seaweed, changed: dict[str, str], field: str, told: str
) -> None:
    storage = _storage(server, lab, server.address().url)
    options = {**storage.container_opts, **changed}
    with pytest.raises(InvalidInput, match=told) as caught:
        lab.create("true", storage=replace(storage, container_opts=options))
    assert caught.value.problems[0].path == field


def test_a_bucket_that_is_not_there(lab: Lab, server: Seaweed) -> None:
    with pytest.raises(InvalidInput, match="not found"):
        lab.create("true", storage=_storage(server, lab, "s3://absent"))
