"""What `sojourn doctor` looks at."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module, metadata
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import __version__, clouds
from sojourn.clouds.local.folders import data_root, machines_root
from sojourn.core.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["checkup"]

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


# What tasks there need beside the base install; pip fetches what machines need.
_EXTRAS = {"aws": ("boto3", "cryptography", "pip")}


def checkup() -> Iterator[Finding]:
    """Look at everything; nothing is changed. Clouds that are set up are asked."""
    yield Finding("ok", "sojourn", __version__)
    yield _python()
    for library in _LIBRARIES:
        yield _library(library)
    yield _folder("local store", data_root())
    yield _folder("local machines", machines_root())
    yield _store()
    for cloud, (variables, files) in _CREDENTIALS.items():
        signs = _found(variables, files)
        yield _credentials(cloud, signs)
        if signs:
            yield from map(_extra, repeat(cloud), _EXTRAS.get(cloud, ()))
        yield from _account(cloud)
    for tool in ("terraform", "tofu", "git"):
        found = shutil.which(tool)
        yield Finding("ok" if found else "note", tool, found or "not found (optional)")
    yield _provider()


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    if sys.platform not in ("linux", "darwin"):
        return Finding("problem", "python", f"{detail}: tasks run on Linux and macOS only")
    return Finding("ok", "python", detail)


def _library(name: str) -> Finding:
    try:
        return Finding("ok", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding("problem", name, f"not installed; run `pip install {name}`")


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
    detail = "conditional writes work" if works else "conditional writes are not supported here"
    return Finding("ok" if works else "problem", "store", detail)


def _found(variables: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    found = [name for name in variables if os.environ.get(name)]
    return found + [path for path in files if Path(path).expanduser().exists()]


def _extra(cloud: str, name: str) -> Finding:
    """A note at most: who has credentials need not use them for this."""
    subject = f"{cloud} {name}"
    try:
        return Finding("ok", subject, metadata.version(name))
    except metadata.PackageNotFoundError:
        install = "python -m ensurepip" if name == "pip" else f"pip install 'sojourn[{cloud}]'"
        return Finding("note", subject, f"not installed, required to run tasks; run `{install}`")


def _credentials(cloud: str, found: list[str]) -> Finding:
    detail = f"credentials found: {', '.join(found)}" if found else "no credentials found"
    if cloud not in clouds.NAMES:
        detail += "; not supported in this version"
    return Finding("note", cloud, detail)


def _account(cloud: str) -> Iterator[Finding]:
    """What the cloud itself tells; nothing that it answers ends the check-up."""
    if cloud not in clouds.NAMES:
        return
    module = import_module(f"sojourn.clouds.{cloud}")
    if not module.is_set_up():
        return
    try:
        yield from module.examine()
    except Exception as error:
        yield Finding("note", f"{cloud} account", f"check failed: {error}")


def _provider() -> Finding:
    """The Terraform provider, and the Python that it was installed with."""
    from sojourn.terraform.install import SOURCE, recorded_python

    subject = "provider"
    python = recorded_python()
    if not python:
        install = "run `sojourn terraform install`"
        return Finding("note", subject, f"{SOURCE} not installed; {install}")
    program = shutil.which(python)
    if program is None:
        again = "run `sojourn terraform install` again"
        return Finding("note", subject, f"its Python {python} no longer exists; {again}")
    probe = "import sojourn.terraform, grpc, google.protobuf, cryptography"
    done = subprocess.run([program, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["unknown error"])[-1]
        extra = "pip install 'sojourn[terraform]'"
        return Finding("note", subject, f"{python} cannot run it: {why}; run `{extra}` there")
    return Finding("ok", subject, f"{SOURCE}, with {python}")
