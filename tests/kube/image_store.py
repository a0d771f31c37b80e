"""The images as containerd has them on disk: imported once, and the same on every node."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.kube import images, mpi_images, places

__all__ = ["folder", "ready"]

_KINDS = (images, mpi_images)
_STARTED_WITHIN = 60.0


def folder() -> Path:
    names = [each.folder().name.encode() for each in _KINDS]
    return places.cache() / f"store-{places.digest(names)}"


def ready() -> Path:
    """Where they are; they are imported if that was not done."""
    archives = [archive for each in _KINDS if (archive := each.built())]
    assert len(archives) == len(_KINDS), "images are not built"
    if not folder().exists():
        with places.building(folder()) as work:
            _import(archives, work)
            for name in ("io.containerd.grpc.v1.cri", "io.containerd.runtime.v2.task", "tmpmounts"):
                shutil.rmtree(work / name, ignore_errors=True)
    return folder()


def _import(archives: Sequence[Path], root: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        settings, socket = Path(temporary, "settings.toml"), Path(temporary, "socket")
        settings.write_text(f"""\
version = 2
oom_score = 0
root = "{root}"
state = "{temporary}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
address = "{socket}"
[ttrpc]
address = "{temporary}/ttrpc"
""")
        with Path(temporary, "log").open("wb") as log:
            server = subprocess.Popen(
                ["containerd", "--config", settings], stdout=log, stderr=subprocess.STDOUT
            )
        try:
            client = ["ctr", "--address", str(socket), "--namespace", "k8s.io"]
            _wait(server, [*client, "version"])
            for archive in archives:
                done = subprocess.run(
                    [*client, "images", "import", "--snapshotter", "overlayfs", str(archive)],
                    capture_output=True,
                    text=True,
                )
                if done.returncode:
                    raise RuntimeError(f"Could not import images: {done.stderr}")
        finally:
            server.terminate()
            server.wait(_STARTED_WITHIN)


def _wait(server: subprocess.Popen[bytes], answered: list[str]) -> None:
    give_up = time.monotonic() + _STARTED_WITHIN
    while subprocess.run(answered, capture_output=True).returncode:
        if server.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError("Could not start containerd to import images")
        time.sleep(0.1)
