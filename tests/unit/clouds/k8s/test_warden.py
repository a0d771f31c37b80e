"""Which pods of an MPI program an agent has made anew, and which it leaves alone."""

from __future__ import annotations

from typing import Any

from sojourn.clouds.k8s.on_machine.warden import Warden

_PAST = "2026-01-01T00:00:00Z"
_READY = [{"type": "Ready", "status": "True"}]
_UNHEARD = [{"type": "Ready", "status": "False"}]


class _Cluster:
    """Remembers what was deleted."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.found = list(pods)
        self.deleted: list[tuple[str, str, int | None]] = []

    def pods(self, labels: str) -> list[dict[str, Any]]:
        assert labels == "training.kubeflow.org/job-name=tpi-x"
        return self.found

    def delete_pod(self, name: str, uid: str, *, grace: int | None = None) -> None:
        self.deleted.append((name, uid, grace))

    def delete_job(self, name: str, uid: str) -> None:
        self.deleted.append((name, uid, None))


def _pod(
    name: str, role: str = "worker", phase: str = "Running", job: str = "", **more: Any
) -> dict[str, Any]:
    owners = [{"kind": "Job", "uid": job}] if job else []
    metadata = {
        "name": name,
        "uid": f"uid of {name}",
        "creationTimestamp": more.pop("made", _PAST),
        "labels": {"training.kubeflow.org/job-role": role},
        "ownerReferences": owners,
        **({"deletionTimestamp": more.pop("until")} if "until" in more else {}),
    }
    return {"metadata": metadata, "status": {"phase": phase, "conditions": _READY, **more}}


def _warden(cluster: _Cluster, rank: int, machine: str = "") -> Warden:
    return Warden("tpi-x", rank, machine, f"uid of {machine}", lambda: cluster)  # type: ignore[arg-type,return-value]


def test_workers_that_failed_or_are_on_a_lost_node_are_deleted() -> None:
    cluster = _Cluster(
        _pod("launcher", "launcher", job="job 1"),
        _pod("evicted", phase="Failed", reason="Evicted"),
        _pod("lost", until="2999-01-01T00:00:00Z", conditions=_UNHEARD),
        _pod("late", until=_PAST),
        _pod("leaving", until="2999-01-01T00:00:00Z"),
        _pod("working"),
        _pod("done", phase="Succeeded"),
        _pod("coming", phase="Pending"),
    )
    _warden(cluster, 0, "launcher")._look()
    assert cluster.deleted == [(name, f"uid of {name}", 0) for name in ("evicted", "lost", "late")]


def test_a_lost_launcher_has_a_new_job() -> None:
    cluster = _Cluster(_pod("launcher", "launcher", job="job 1"), _pod("w0"))
    warden = _warden(cluster, 1, "w0")
    warden._look()
    assert cluster.deleted == []
    cluster.found = [_pod("w0")]  # deleted without grace
    warden._look()
    warden._look()
    assert cluster.deleted == [("tpi-x-launcher", "job 1", None)]
    cluster.found = [_pod("again", "launcher", phase="Failed", job="job 2"), _pod("w0")]
    warden._look()
    assert cluster.deleted[1:] == [("tpi-x-launcher", "job 2", None)]


def test_a_launcher_that_is_done_is_left_alone() -> None:
    cluster = _Cluster(_pod("launcher", "launcher", phase="Succeeded", job="job 1"))
    _warden(cluster, 1, "w0")._look()
    assert cluster.deleted == []


def test_one_that_never_saw_a_launcher_waits_for_it() -> None:
    cluster = _Cluster(_pod("w0"))
    _warden(cluster, 1, "w0")._look()
    assert cluster.deleted == []


def test_a_worker_replaces_itself() -> None:
    cluster = _Cluster(_pod("w0"))
    _warden(cluster, 1, "w0").replace_own()
    assert cluster.deleted == [("w0", "uid of w0", None)]


def test_a_launcher_replaces_its_own_job_and_none_that_came_since() -> None:
    newer = _pod("newer", "launcher", job="job 2", made="2026-02-01T00:00:00Z")
    cluster = _Cluster(_pod("launcher", "launcher", job="job 1"), newer)
    _warden(cluster, 0, "launcher").replace_own()
    assert cluster.deleted == [("tpi-x-launcher", "job 1", None)]
    cluster = _Cluster(newer)
    _warden(cluster, 0, "launcher").replace_own()
    assert cluster.deleted == []


def test_a_cluster_out_of_reach_keeps_nobody() -> None:
    def refuse() -> Any:
        raise OSError("no route")

    Warden("tpi-x", 1, "w0", "", refuse).replace_own()
