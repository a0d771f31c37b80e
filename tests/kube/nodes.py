"""Starts a node, takes it away as a machine that loses its power, and brings it back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.kube import binaries, groups, image_store, layout, network, node_files, processes
from tests.kube.layout import Node

__all__ = ["init_of", "kill", "runs", "start", "tag_image", "untag_image"]

_NAMESPACES = ("mount", "net", "pid", "uts", "ipc")
_INIT_WITHIN = 30.0
_GONE_WITHIN = 60.0


def start(node: Node, eviction: Mapping[str, str] = node_files.EVICTION) -> None:
    """Start it, if it does not run; it joins the cluster by itself."""
    if runs(node):
        return
    kill(node)  # what is left of a start that failed
    node_files.write(node, image_store.ready(), eviction)
    shared = layout.STATE / "shared"
    shared.mkdir(exist_ok=True)
    groups.create(node.group)
    init = [sys.executable, "-m", "tests.kube.node_init", node.name]
    processes.start(
        _process(node),
        [
            *("unshare", *(f"--{each}" for each in _NAMESPACES)),
            *("--fork", "--kill-child", "--mount-proc", "--", *init),
            *(binaries.hyperkube(), node.disk, shared),
        ],
    )
    network.connect(node, _wait_for_init(node))


def kill(node: Node) -> None:
    """End all its processes at once; its disk stays, and the cluster has to find out."""
    init = init_of(node)
    if init is not None:
        with suppress(ProcessLookupError):
            os.kill(init, signal.SIGKILL)
    # It waits for its init, and that one ends last of all.
    give_up = time.monotonic() + _GONE_WITHIN
    while init is not None and runs(node) and time.monotonic() < give_up:
        time.sleep(0.02)
    processes.stop(_process(node))
    network.disconnect(node)
    groups.remove(node.group)


def runs(node: Node) -> bool:
    return processes.alive(_process(node))


def init_of(node: Node) -> int | None:
    """The first process of the node, as seen from here."""
    parent = processes.pid_of(_process(node))
    if parent is None:
        return None
    with suppress(FileNotFoundError, ProcessLookupError):
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(children[0]) if children else None
    return None


def _wait_for_init(node: Node) -> int:
    give_up = time.monotonic() + _INIT_WITHIN
    while time.monotonic() < give_up and runs(node):
        init = init_of(node)
        if init is not None:
            return init
        time.sleep(0.01)
    raise RuntimeError(f"Could not start node {node.name}: see {processes.log(_process(node))}")


def _process(node: Node) -> str:
    return f"node-{node.name}"


def tag_image(node: Node, name: str, new: str) -> None:
    """Have it know an image by another name as well."""
    _ctr(node, "tag", "--force", name, new)


def untag_image(node: Node, name: str) -> None:
    _ctr(node, "rm", name)


def _ctr(node: Node, *arguments: str) -> None:
    init = init_of(node)
    assert init, f"node {node.name} does not run"
    within = ["nsenter", f"--target={init}", "--mount", "--"]
    client = ["ctr", "--address", node_files.SOCKET, "--namespace", "k8s.io", "images"]
    subprocess.run([*within, *client, *arguments], check=True, capture_output=True)
