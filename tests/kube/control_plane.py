"""Starts etcd and the programs of Kubernetes that no node has, with quick ends of lost nodes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kube import binaries, layout, processes

__all__ = ["NAMES", "ended", "start_api", "start_controllers"]

# In the order in which they start
_OURS = ("dns", "provisioner")
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", *_OURS)

# Of a node that says nothing, and then of pods on it; five minutes and more by default
_NODE_LOST_AFTER = 16
_PODS_LOST_AFTER = 5


def start_api() -> None:
    """Start etcd and the API server, unless they run."""
    _start("etcd")
    _start("kube-apiserver")


def start_controllers() -> None:
    """Start the rest; all of them need an API server that is ready."""
    _start("kube-controller-manager")
    _start("kube-scheduler")
    for name in _OURS:
        if not processes.alive(name):
            processes.start(name, [sys.executable, "-m", f"tests.kube.{name}"])


def ended() -> list[str]:
    """The programs that were started and do not run."""
    return [name for name in processes.recorded() if not processes.alive(name)]


def _start(name: str) -> None:
    if not processes.alive(name):
        options = _options(layout.STATE / "pki")[name]
        given = [f"--{option}={value}" for option, value in options.items()]
        processes.start(name, [binaries.hyperkube(), name, *given])


def _options(pki: Path) -> dict[str, dict[str, str | Path]]:
    return {
        "etcd": {
            "name": "etcd",
            "data-dir": layout.STATE / "etcd",
            "listen-client-urls": layout.ETCD,
            "advertise-client-urls": layout.ETCD,
            "listen-peer-urls": layout.ETCD_PEER,
            "initial-advertise-peer-urls": layout.ETCD_PEER,
            "initial-cluster": f"etcd={layout.ETCD_PEER}",
            "unsafe-no-fsync": "true",  # nothing in it has to survive this computer
            "log-level": "warn",
        },
        "kube-apiserver": _api_server(pki),
        "kube-controller-manager": {
            **_client(pki / "controller-manager.kubeconfig"),
            "root-ca-file": pki / "ca.crt",
            "service-account-private-key-file": pki / "accounts.key",
            "use-service-account-credentials": "true",
            "cluster-signing-cert-file": pki / "ca.crt",
            "cluster-signing-key-file": pki / "ca.key",
            "node-monitor-period": "2s",
            "node-monitor-grace-period": f"{_NODE_LOST_AFTER}s",
        },
        "kube-scheduler": _client(pki / "scheduler.kubeconfig"),
    }


def _api_server(pki: Path) -> dict[str, str | Path]:
    return {
        "etcd-servers": layout.ETCD,
        "bind-address": layout.GATEWAY,
        "advertise-address": layout.GATEWAY,
        "secure-port": "6443",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-client-certificate": pki / "apiserver-to-kubelet.crt",
        "kubelet-client-key": pki / "apiserver-to-kubelet.key",
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki / "accounts.pub",
        "service-account-signing-key-file": pki / "accounts.key",
        "service-cluster-ip-range": layout.SERVICE_NETWORK,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "default-not-ready-toleration-seconds": str(_PODS_LOST_AFTER),
        "default-unreachable-toleration-seconds": str(_PODS_LOST_AFTER),
    }


def _client(kubeconfig: Path) -> dict[str, str | Path]:
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
        "secure-port": "0",  # nobody asks them, and ports are few
    }
