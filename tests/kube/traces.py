"""What a cluster could leave on this computer: compare it from before and after."""

from __future__ import annotations

import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.kube import groups, layout, processes
from tests.simcloud.machines import leftovers
from tests.support.processes import marked

__all__ = ["found"]

# Where containerd, the kubelet and CNI plugins leave things unless told otherwise
_FOLDERS = (
    "/etc/cni",
    "/etc/kubernetes",
    "/opt/cni",
    "/opt/containerd",
    "/run/containerd",
    "/run/netns",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
_SETTINGS = ("kernel/keys", "kernel/panic*", "net/ipv4/conf/all", "net/ipv4/ip_forward", "vm")
_UNSTEADY = ("compact_memory", "drop_caches", "stat_refresh")  # commands and not settings


def found(number: int) -> list[str]:
    """Of the cluster of this number, or of whatever concerns the whole computer."""
    state = layout.state(number)
    names = [f"{layout.bridge(number)}-{node.name}" for node in layout.NODES]
    return sorted(
        [
            *(f"process {pid}" for pid in marked(str(state), processes.MARK)),
            *(f"process {pid} of a pod" for pid in _in_groups(names)),
            *(f"group {path}" for name in names for path in groups.found(name)),
            *(f"file {path}" for path in state.glob("*")),
            *(f"mount {line}" for line in _mounts()),
            *(f"link {name}" for _, name in socket.if_nameindex()),
            *(f"route {line}" for line in _lines("ip", "route", "show", "table", "all")),
            *(f"filter {line}" for line in _lines("iptables", "--list-rules")),
            *(f"filter {line}" for line in _lines("iptables", "--table=nat", "--list-rules")),
            *(f"setting {line}" for line in _settings()),
            *(f"file {path}" for each in _FOLDERS for path in [each, *Path(each).glob("*")]),
        ]
    )


def _mounts() -> list[str]:
    """Those of simulated machines come and go as other tests do."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if leftovers.PREFIX not in line]


def _in_groups(names: list[str]) -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):
            text = path.read_text()
            if any(f"/{name}" in text for name in names):
                pids.append(int(path.parent.name))
    return pids


def _lines(*command: str) -> list[str]:
    return subprocess.check_output(command, text=True).splitlines()


def _settings() -> list[str]:
    lines = []
    for pattern in _SETTINGS:
        for top in Path("/proc/sys").glob(pattern):
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                with suppress(OSError):
                    if path.is_file() and path.name not in _UNSTEADY:
                        lines.append(f"{path} {path.read_text().strip()}")
    return lines
