"""A namespace of the cluster for tests, with Sojourn and kubectl pointed at it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load


@contextmanager
def namespace() -> Iterator[tuple[Api, Path]]:
    from tests.kube import images, layout, sharing

    with ExitStack() as opened:
        home = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        opened.enter_context(sharing.shared())
        (home / "cache" / "sojourn").mkdir(parents=True)
        (home / "cache" / "sojourn" / "wheels").symlink_to(Path(sys.prefix) / "wheels")
        name = f"bench-{uuid.uuid4().hex[:8]}"
        variables = {
            "KUBECONFIG": str(layout.KUBECONFIG),
            "SOJOURN_K8S_NAMESPACE": name,
            "SOJOURN_K8S_AGENT_IMAGE": images.PYTHON,
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
        }
        opened.enter_context(mock.patch.dict(os.environ, variables))
        api = Api(load)
        api.create("Namespace", {"metadata": {"name": name}})
        opened.callback(api.delete, "Namespace", name)
        while api.find("ServiceAccount", "default") is None:
            time.sleep(0.1)
        yield api, home


def kubectl(*arguments: str, given: str = "", check: bool = True) -> str:
    """What it prints. `given`: its standard input."""
    command = ["kubectl", "--namespace", os.environ["SOJOURN_K8S_NAMESPACE"], *arguments]
    done = subprocess.run(command, check=check, capture_output=True, text=True, input=given)
    return done.stdout
