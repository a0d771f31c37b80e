"""What is on the disk of a node before it starts: its programs' settings and its images."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kube import dns, images, layout, packages
from tests.kube.layout import GATEWAY, POD_NETWORK, Node

__all__ = ["EVICTION", "SETTINGS", "SHARED", "VOLUMES", "write"]

# As the node sees them, of which all of /var is its own
SETTINGS = Path("/var/lib/sojourn-kube")
VOLUMES = Path("/var/volumes")  # of class `node`
SHARED = Path("/var/shared")  # of class `shared`
SOCKET = "/run/containerd/containerd.sock"
_FOLDERS = ("lib/sojourn-kube/cni", "log", "shared", "tmp", "volumes")

# Evicts late: tests run on disks that are almost full.
EVICTION: Mapping[str, str] = {
    "memory.available": "100Mi",
    "nodefs.available": "1%",
    "imagefs.available": "1%",
    "nodefs.inodesFree": "1%",
}


def write(node: Node, store: Path, eviction: Mapping[str, str]) -> None:
    """Prepare the disk; one from before keeps its containers and volumes, as after a reboot."""
    for name in _FOLDERS:
        (node.disk / name).mkdir(parents=True, exist_ok=True)
    if not (node.disk / "run").is_symlink():
        (node.disk / "run").symlink_to("/run")
    settings = node.disk / SETTINGS.relative_to("/var")
    pki = layout.STATE / "pki"
    for name, target in _certificates(node).items():
        shutil.copy(pki / name, settings / target)
    (settings / "containerd.toml").write_text(_containerd())
    for name, content in (
        ("kubelet.json", _kubelet(node, eviction)),
        ("proxy.json", _proxy(node)),
        ("cni/10-pods.conflist", _cni(node)),
    ):
        (settings / name).write_text(json.dumps(content, indent=2))
    if not (node.disk / "lib" / "containerd").exists():
        _copy_store(store, node.disk / "lib" / "containerd")


def _certificates(node: Node) -> dict[str, str]:
    return {
        "ca.crt": "ca.crt",
        f"kubelet-{node.name}.kubeconfig": "kubelet.kubeconfig",
        "proxy.kubeconfig": "proxy.kubeconfig",
        f"serving-{node.name}.crt": "serving.crt",
        f"serving-{node.name}.key": "serving.key",
    }


def _copy_store(store: Path, target: Path) -> None:
    """Layers and blobs never change, so links to them do; the databases are real copies."""
    partial = target.with_name("containerd.partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["cp", "--archive", "--link", store, partial], check=True)
    for database in partial.glob("*/*.db"):
        database.unlink()
        shutil.copy2(store / database.relative_to(partial), database)
    partial.rename(target)


def _containerd() -> str:
    runc = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc'
    unused = ", ".join(
        f'"io.containerd.snapshotter.v1.{name}"' for name in ("aufs", "btrfs", "devmapper", "zfs")
    )
    # A process without CAP_SYS_RESOURCE can only raise its OOM score.
    return f"""\
version = 2
oom_score = 0
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [{unused}]
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{images.PAUSE}"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{packages.CNI}"
conf_dir = "{SETTINGS}/cni"
[{runc}]
runtime_type = "io.containerd.runc.v2"
[{runc}.options]
SystemdCgroup = false
"""


def _cni(node: Node) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    plugins = [{**bridge, "ipam": addresses}, ports]
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}


def _kubelet(node: Node, eviction: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{SETTINGS}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{SETTINGS}/serving.crt",
        "tlsPrivateKeyFile": f"{SETTINGS}/serving.key",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "clusterDomain": dns.DOMAIN,
        "clusterDNS": [GATEWAY],
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "evictionHard": dict(eviction),
        "imageGCHighThresholdPercent": 100,  # an image removed could not be pulled again
        "nodeStatusUpdateFrequency": "4s",
    }


def _proxy(node: Node) -> dict[str, Any]:
    # Zero leaves the limits of the whole computer as they are.
    kept = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{SETTINGS}/proxy.kubeconfig"},
        "clusterCIDR": POD_NETWORK,
        "conntrack": kept,
        "hostnameOverride": node.name,
        "mode": "iptables",
        "oomScoreAdj": 0,
    }
