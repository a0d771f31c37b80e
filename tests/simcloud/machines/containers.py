"""Podman or Docker on machines, and a registry with small images beside it.

They are real ones, of the host or fetched, see `tests.simcloud.debs`: Podman when the tests are set
up, and Docker, which is large, by whoever wants it. What machines do not allow is switched off in
their settings: cgroups for containers of Podman, a storage driver with mounts of its own, and for
Docker all that is about networks.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.simcloud import debs
from tests.simcloud.machines import image, registry

PORT = 5000
SMALL = f"localhost:{PORT}/small:1"  # busybox, by root
PERSON = f"localhost:{PORT}/small:person"  # the same by another user
SHELLLESS = f"localhost:{PORT}/small:shellless"
ABSENT = f"localhost:{PORT}/small:absent"
SECRET = f"localhost:{PORT}/secret:1"
_USR = Path("/usr")
_FETCHED = Path(sys.prefix)  # in a folder with the name of the engine; `make` puts Podman there
_ENGINES = {"docker": debs.DOCKER, "podman": debs.PODMAN}
_FOLDER = "opt/registry"
_FILES: Mapping[str, str] = {
    "etc/containers/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
    "etc/containers/registries.conf": f"""\
[[registry]]
location = "localhost:{PORT}"
insecure = true
""",
    "etc/containers/storage.conf": """\
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
""",
    "etc/containers/containers.conf": """\
[containers]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
runtime = "crun"
""",
    "etc/systemd/system/registry.service": f"""\
[Unit]
Description=Registry of container images
After=network.target
Before=cloud-final.service

[Service]
ExecStart=python3 /{_FOLDER}/registry.py {PORT} /{_FOLDER}
StandardError=null
""",
    # Not started with the machine: whoever needs it has to.
    "etc/systemd/system/docker.service": """\
[Unit]
Description=Docker
After=network.target

[Service]
Type=notify
ExecStart=dockerd --bridge=none --ip-forward=false --iptables=false --ip6tables=false \\
 --storage-driver=vfs --exec-opt native.cgroupdriver=cgroupfs
Delegate=yes
KillMode=process
StandardOutput=null
StandardError=null
""",
}
_WANTED = "etc/systemd/system/multi-user.target.wants/registry.service"
_BELOW_ETC = {"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n"}
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def unavailable(engine: str) -> str | None:
    """Why machines have no such engine, and what to do about it; or None."""
    fetched, programs = _FETCHED / engine, _ENGINES[engine]
    missing = debs.missing(_USR, fetched, programs=programs)
    if missing:
        return (
            f"machines need programs that are missing: apt install {' '.join(missing)}, "
            f"or python -m tests.simcloud.debs {fetched} {engine}"
        )
    busybox = _where("bin/busybox", fetched)
    if b"/ld-" in busybox.read_bytes()[:8192]:  # images have no libraries
        return "busybox needs libraries: apt install busybox-static"
    return None


def _where(program: str, fetched: Path) -> Path:
    return next(each / program for each in (fetched, _USR) if (each / program).exists())


def install(folder: Path, engine: str) -> None:
    """Add all of it to the image in this folder, before a machine boots from it."""
    root, usr, fetched = folder / "root", folder / "usr", _FETCHED / engine
    for program in _ENGINES[engine]:
        (usr / program).unlink(missing_ok=True)  # images hide what the host has
        image.put(usr, program, _where(program, fetched).read_bytes(), 0o755)
    if fetched.is_dir():
        shutil.copytree(fetched, usr, symlinks=True, dirs_exist_ok=True)
    for path, text in _FILES.items():
        image.put(root, path, text.encode())
    image.make_link(root, _WANTED, "../registry.service")
    image.put(root, f"{_FOLDER}/registry.py", Path(registry.__file__).read_bytes())
    busybox = (usr / "bin/busybox").read_bytes()
    shell = _layer(busybox, _applets(usr / "bin/busybox"))
    settings = {"Env": ["PATH=/bin", "FROM_IMAGE=yes"]}
    _publish(root, "1", shell, settings)
    _publish(root, "person", shell, {**settings, "User": "1234:1234"})
    _publish(root, "shellless", _layer(busybox, []), settings)


def _applets(busybox: Path) -> list[str]:
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def _layer(busybox: bytes, applets: list[str]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = len(busybox), 0o755
        tar.addfile(program, io.BytesIO(busybox))
        for name in applets:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                tar.addfile(link)
        for path, text in _BELOW_ETC.items():
            file = tarfile.TarInfo(f"etc/{path}")
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
        for folder, mode in (("home", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            made = tarfile.TarInfo(folder)
            made.type, made.mode = tarfile.DIRTYPE, mode
            tar.addfile(made)
    return written.getvalue()


def _publish(root: Path, tag: str, layer: bytes, settings: Mapping[str, Any]) -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = json.dumps(
        {
            "architecture": machine,
            "os": "linux",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    described = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _described(_CONFIG, config),
        "layers": [_described(_LAYER, layer)],
    }
    place = f"{_FOLDER}/v2/small"
    for data in (config, layer):
        image.put(root, f"{place}/blobs/{_digest(data)}", data)
    manifest = json.dumps(described).encode()
    for name in (tag, _digest(manifest)):  # Docker asks for both
        image.put(root, f"{place}/manifests/{name}", manifest)


def _described(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
