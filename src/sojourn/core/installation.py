"""The command that adds an extra to this installation, whichever installer made it.

The name alone would fetch whatever the package index has under it. So the
command names the place that this installation came from, which installers record beside it. If
that was removed since, it names what the extra adds. Everything is read when an error needs it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["install_command"]

_NAME = "sojourn"
_ROOT = Path(__file__).resolve().parents[3]  # of a clone, if this is one
_OF_EXTRA = re.compile(r"([^;]+?) *;.*\bextra == [\"']([\w-]+)[\"']")
_PACKAGE = re.compile(r"[\w.-]+")


def install_command(extra: str) -> str:
    """What to run in a shell."""
    from importlib import metadata  # not free, and only errors need it

    try:
        found: Distribution | None = metadata.distribution(_NAME)
    except metadata.PackageNotFoundError:
        found = None  # run from a clone that was not installed
    source = _source(found)
    editable = bool(source.get("dir_info", {}).get("editable"))
    return " ".join(_command(extra, found, source, editable))


def _command(
    extra: str, found: Distribution | None, source: dict[str, Any], editable: bool
) -> list[str]:
    prefix = Path(sys.prefix)
    if _is_gone(source):
        return [*_pip(prefix), *map(shlex.quote, _requirements(found).get(extra, ()))]
    if (prefix / "uv-receipt.toml").exists() or (prefix / "pipx_metadata.json").exists():
        # These make the environment anew, so what it has already must be named as well.
        installer = "uv tool" if (prefix / "uv-receipt.toml").exists() else "pipx"
        everything = sorted({extra, *_installed_extras(found)})
        option = ["--editable"] if editable else []
        return [installer, "install", "--force", *option, _quoted(source, everything)]
    option = ["-e"] if editable else []
    return [*_pip(prefix), *option, _quoted(source, [extra])]


def _pip(prefix: Path) -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", shlex.quote(sys.executable)]
    if Path(shutil.which("pip") or "/").parent == prefix / "bin":
        return ["pip", "install"]
    return [shlex.quote(sys.executable), "-m", "pip", "install"]


def _quoted(source: dict[str, Any], extras: list[str]) -> str:
    named = f"[{','.join(extras)}]"
    url = str(source.get("url", ""))
    if "dir_info" in source:
        return shlex.quote(unquote(urlsplit(url).path) + named)
    if "vcs_info" in source:
        told = source["vcs_info"]
        revision = told.get("requested_revision") or told["commit_id"]
        return shlex.quote(f"{_NAME}{named} @ {told['vcs']}+{url}@{revision}")
    return shlex.quote(f"{_NAME}{named} @ {url}" if url else _NAME + named)


def _source(found: Distribution | None) -> dict[str, Any]:
    """Where this installation came from, as PEP 610 records it; empty if from an index."""
    if found is None:
        return {"url": _ROOT.as_uri(), "dir_info": {"editable": True}}
    read: dict[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
    return read


def _is_gone(source: dict[str, Any]) -> bool:
    """Whether it was a clone or file of this computer that was removed since."""
    place = urlsplit(str(source.get("url", "")))
    return place.scheme == "file" and not Path(unquote(place.path)).exists()


def _installed_extras(found: Distribution | None) -> set[str]:
    from importlib import metadata

    there = {str(each.metadata["Name"]).lower() for each in metadata.distributions()}
    return {extra for extra, needed in _requirements(found).items() if _names(needed) <= there}


def _requirements(found: Distribution | None) -> dict[str, list[str]]:
    """What each extra adds, as it is written."""
    needed: dict[str, list[str]] = {}
    for requirement in (found and found.requires) or ():
        match = _OF_EXTRA.match(requirement)
        if match and _names([match[1]]) != {_NAME}:  # an extra of extras has no packages of its own
            needed.setdefault(match[2], []).append(match[1])
    return needed


def _names(requirements: list[str]) -> set[str]:
    return {found[0].lower() for each in requirements if (found := _PACKAGE.match(each))}
