"""The first process of a node, in namespaces of its own: prepares them and runs its programs.

    python -m tests.kube.node_init NAME HYPERKUBE DISK SHARED

All of the node ends with this process. What is on its disk does not belong here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.kube.layout import GATEWAY, NODES, Node, node
from tests.kube.node_files import SETTINGS, SHARED
from tests.kube.processes import MARK
from tests.simcloud.machines import kernel

_HYPERKUBE = "/run/hyperkube"
_MS_SHARED = 1 << 20
# The kubelet sets these, which are of the whole computer: give it files to write to instead.
_TUNED = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)


def main(name: str, hyperkube: str, disk: str, shared: str) -> None:
    this = node(name)
    kernel.set_hostname(name)
    _mount(hyperkube, disk, shared)
    _connect(this)
    programs = {
        "containerd": ["containerd", "--config", f"{SETTINGS}/containerd.toml"],
        "kubelet": [
            *(_HYPERKUBE, "kubelet", f"--config={SETTINGS}/kubelet.json"),
            f"--kubeconfig={SETTINGS}/kubelet.kubeconfig",
            f"--hostname-override={name}",
            f"--node-ip={this.address}",
            "--v=2",
        ],
        "kube-proxy": [_HYPERKUBE, "kube-proxy", f"--config={SETTINGS}/proxy.json"],
    }
    _supervise(programs)


def _mount(hyperkube: str, disk: str, shared: str) -> None:
    """Own /var and /run; opened first, as they may be below what gets hidden."""
    opened = [os.open(path, os.O_PATH) for path in (hyperkube, disk, shared)]
    program, disk, shared = (f"/proc/self/fd/{each}" for each in opened)
    kernel.mount("tmpfs", "/run", "tmpfs", kernel.MS_NODEV, "mode=755")
    kernel.bind(disk, "/var")
    kernel.bind(shared, str(SHARED))
    Path(_HYPERKUBE).touch()
    kernel.bind(program, _HYPERKUBE)
    for each in opened:
        os.close(each)
    for name in _TUNED:
        real = Path("/proc/sys", name)
        if real.exists():
            copy = Path("/run", name.replace("/", "."))
            copy.write_text(real.read_text())
            kernel.bind(str(copy), str(real))
    # Volumes mounted later have to show in containers, as on a machine with systemd.
    kernel.mount("none", "/", "", _MS_SHARED | kernel.MS_REC)


def _connect(this: Node) -> None:
    while not _has_card():  # it is put in from outside
        time.sleep(0.02)
    for command in (
        "link set lo up",
        f"address add {this.address}/24 dev eth0",
        "link set eth0 up",
        f"route add default via {GATEWAY}",
        *(f"route add {each.pods} via {each.address}" for each in NODES if each != this),
    ):
        subprocess.run(["ip", *command.split()], check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _has_card() -> bool:
    # Not /sys, which shows the cards of the computer
    return "eth0:" in Path("/proc/self/net/dev").read_text()


def _supervise(programs: dict[str, list[str]]) -> None:
    """Start all, start again what ends, and reap what is left by others, until killed."""
    running = {_start(name, command): name for name, command in programs.items()}
    while True:
        pid, _ = os.wait()
        if pid in running:
            name = running.pop(pid)
            time.sleep(1)
            running[_start(name, programs[name])] = name


def _start(name: str, command: list[str]) -> int:
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "TMPDIR": "/var/tmp",
        "HOME": "/root",
        MARK: os.environ[MARK],
    }
    with Path("/var/log", f"{name}.log").open("ab") as output:
        process = subprocess.Popen(
            command, env=environment, cwd="/", stdout=output, stderr=subprocess.STDOUT
        )
    process.returncode = 0  # reaped with all others
    return process.pid


if __name__ == "__main__":
    main(*sys.argv[1:])
