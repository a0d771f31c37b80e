"""The API server is away for a minute: nothing is lost, and following goes on when it is back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import sojourn
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab, log_of
from tests.kube import processes
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

pytestmark = pytest.mark.alone

_AWAY = 60.0


@pytest.fixture(autouse=True)
def ours(kube_cluster: KubeCluster) -> None:
    if not kube_cluster.ours:
        pytest.skip("stops the API server, which only the cluster for tests allows")


@contextmanager
def _away() -> Iterator[None]:
    """Until the end of the block, it answers nobody."""
    pid = processes.pid_of("kube-apiserver")
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_away_while_following_and_while_the_script_ends(lab: Lab, kit: KubernetesKit) -> None:
    script = "mkdir output; for i in 1 2 3; do echo line $i; sleep 10; done; echo x > output/x"
    handle = lab.create(script)
    found: list[sojourn.Result] = []
    follower = threading.Thread(target=lambda: found.append(handle.wait()), daemon=True)
    follower.start()
    until(lambda: "line 1" in log_of(sojourn.get(handle.id)))
    with _away():
        time.sleep(_AWAY)
    follower.join()
    assert found[0].status is sojourn.State.SUCCEEDED
    assert [text for text in log_of(handle) if text.startswith("line")] == [
        "line 1",
        "line 2",
        "line 3",
    ]
    handle.delete()
    assert lab.output() == {"x": "x\n"}


def test_away_while_uploading(lab: Lab, kit: KubernetesKit) -> None:
    size = 64 << 20
    (lab.workdir / "data").write_bytes(os.urandom(size))
    began = threading.Event()
    tell = lab.events.append

    def on_event(event: object) -> None:
        tell(event)
        if type(event).__name__ == "Progress":
            began.set()

    def interrupt() -> None:
        began.wait()
        with _away():
            time.sleep(_AWAY / 3)

    interrupter = threading.Thread(target=interrupt, daemon=True)
    interrupter.start()
    task = lab.task("mkdir output; wc -c < data > output/size")
    result = sojourn.run(task, on_event=on_event)
    began.set()
    interrupter.join()
    assert result.status is sojourn.State.SUCCEEDED
    assert lab.output() == {"size": f"{size}\n"}
