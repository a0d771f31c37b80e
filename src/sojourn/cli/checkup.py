"""What `sojourn doctor` looks at."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import __version__, clouds
from sojourn.clouds.local.folders import data_root, machines_root

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Finding", "checkup"]

_LIBRARIES = ("blake3", "click", "lark", "msgspec", "obstore", "python-hcl2", "pyyaml", "tqdm")
_CREDENTIALS = {
    "aws": (("AWS_ACCESS_KEY_ID", "AWS_PROFILE"), ("~/.aws/credentials", "~/.aws/config")),
    "az": (("AZURE_CLIENT_ID",), ("~/.azure/azureProfile.json",)),
    "gcp": (
        ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS_DATA"),
        ("~/.config/gcloud/application_default_credentials.json",),
    ),
    "k8s": (("KUBECONFIG", "KUBECONFIG_DATA", "KUBERNETES_CONFIGURATION"), ("~/.kube/config",)),
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `verdict`: ok, note or problem."""

    verdict: str
    subject: str
    detail: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def checkup() -> Iterator[Finding]:
    """Look at everything; nothing is changed, and no cloud is called."""
    yield Finding("ok", "sojourn", __version__)
    yield _python()
    for library in _LIBRARIES:
        yield _library(library)
    yield _folder("local store", data_root())
    yield _folder("local machines", machines_root())
    yield _store()
    for cloud, (variables, files) in _CREDENTIALS.items():
        yield _credentials(cloud, variables, files)
    for tool in ("terraform", "tofu", "git"):
        found = shutil.which(tool)
        yield Finding("ok" if found else "note", tool, found or "not found; it is optional")


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    if sys.platform not in ("linux", "darwin"):
        return Finding("problem", "python", f"{detail}: tasks run on Linux and macOS only")
    return Finding("ok", "python", detail)


def _library(name: str) -> Finding:
    try:
        return Finding("ok", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding("problem", name, f"is missing; install it with: pip install {name}")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _folder(subject: str, folder: Path) -> Finding:
    existing = _existing(folder)
    if not existing.is_dir():
        return Finding("problem", subject, f"{existing} is not a folder; remove it")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding("problem", subject, f"{existing} is not writable: {error.strerror}")
    free = shutil.disk_usage(existing).free / 2**30
    return Finding("ok", subject, f"{folder}, {free:.1f} GiB free")


def _store() -> Finding:
    """Leases need a store that creates an object for exactly one of its callers."""
    from sojourn.core.errors import SojournError
    from sojourn.storage.store import StoreAddress, open_store

    try:
        with tempfile.TemporaryDirectory(dir=_existing(data_root())) as folder:
            store = open_store(StoreAddress(f"file://{folder}"))
            works = store.put_new("probe", b"1") and not store.put_new("probe", b"2")
    except (SojournError, OSError) as error:
        return Finding("problem", "store", str(error))
    detail = "conditional writes work" if works else "conditional writes do not work here"
    return Finding("ok" if works else "problem", "store", detail)


def _credentials(cloud: str, variables: tuple[str, ...], files: tuple[str, ...]) -> Finding:
    found = [name for name in variables if os.environ.get(name)]
    found += [path for path in files if Path(path).expanduser().exists()]
    detail = f"credentials found: {', '.join(found)}" if found else "no credentials found"
    if cloud not in clouds.NAMES:
        detail += "; this version has no such cloud yet"
    return Finding("note", cloud, detail)
