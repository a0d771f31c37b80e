"""Writes images as an OCI layout in a tar. What is in them does not belong here."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Image", "architecture", "write"]

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TYPE = "application/vnd.oci.image"


@dataclass(frozen=True)
class Image:
    """A root file system under a name, and what runs in it unless a pod says otherwise."""

    name: str
    root: Path
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    environment: tuple[str, ...] = ()


def architecture() -> str:
    """This computer's, as images and Debian call it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def write(target: Path, images: Sequence[Image]) -> None:
    """All images into one tar; those with the same root share it."""
    with tarfile.open(target, "w") as tar:
        layers = {root: _add_file(tar, root) for root in {image.root for image in images}}
        manifests = [_add_image(tar, image, layers[image.root]) for image in images]
        index = {"schemaVersion": 2, "mediaType": f"{_TYPE}.index.v1+json", "manifests": manifests}
        _add(tar, "index.json", _json(index))
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))


def _add_image(tar: tarfile.TarFile, image: Image, layer: dict[str, Any]) -> dict[str, Any]:
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": [_PATH, *image.environment],
            "Entrypoint": list(image.entrypoint) or None,
            "Cmd": list(image.command) or None,
            "User": image.user,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": _add_blob(tar, f"{_TYPE}.config.v1+json", _json(config)),
        "layers": [layer],
    }
    named = {"io.containerd.image.name": image.name}
    return {
        **_add_blob(tar, f"{_TYPE}.manifest.v1+json", _json(manifest)),
        "annotations": {**named, "org.opencontainers.image.ref.name": image.name.split(":")[-1]},
    }


def _add_file(tar: tarfile.TarFile, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        hashed = hashlib.sha256()
        while piece := file.read(1 << 20):
            hashed.update(piece)
        size = file.tell()
        file.seek(0)
        entry = tarfile.TarInfo(f"blobs/sha256/{hashed.hexdigest()}")
        entry.size = size
        tar.addfile(entry, file)
    return _described(f"{_TYPE}.layer.v1.tar", hashed.hexdigest(), size)


def _add_blob(tar: tarfile.TarFile, kind: str, data: bytes) -> dict[str, Any]:
    hexdigest = hashlib.sha256(data).hexdigest()
    _add(tar, f"blobs/sha256/{hexdigest}", data)
    return _described(kind, hexdigest, len(data))


def _described(kind: str, hexdigest: str, size: int) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hexdigest}", "size": size}


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
