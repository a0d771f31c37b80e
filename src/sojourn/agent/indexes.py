"""Where this computer gets Python packages from: what pip and uv were told, read without them.

An installation by uv has no pip. What is fetched has a known hash, so it makes no difference which
of the indexes has it.
"""

from __future__ import annotations

import configparser
import mmap
import os
import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_config_var
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Sources", "sources"]

_OF_PIP = re.compile(r'PackageIndex\(\s*"(https://[^"]+)"')
_OF_UV = re.compile(rb"https://[a-z0-9.-]+/simple")
_SECTIONS = ("global", "download", "install")
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@dataclass(frozen=True)
class Sources:
    """Indexes by their addresses, and folders with wheels."""

    indexes: tuple[str, ...]
    folders: tuple[Path, ...] = ()
    certificates: str = ""  # a file; empty: those of this computer
    proxy: str = ""  # empty: that of the usual variables


def sources(environment: Mapping[str, str]) -> Sources:
    """What uv was told goes before what pip was told, and variables before files."""
    told = _pip_files(environment)
    variables = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_") and value
    }
    told |= variables
    first = (
        environment.get("UV_DEFAULT_INDEX")
        or environment.get("UV_INDEX_URL")
        or told.get("index-url")
        or _default()
    )
    more = " ".join(
        (
            environment.get("UV_INDEX", ""),
            environment.get("UV_EXTRA_INDEX_URL", ""),
            told.get("extra-index-url", ""),
        )
    ).split()
    alone = told.get("no-index", "").lower() in ("1", "true", "yes", "on")
    indexes = () if alone else tuple(_named(each) for each in (first, *more) if each)
    links = f"{told.get('find-links', '')} {environment.get('UV_FIND_LINKS', '')}"
    folders = [Path(each.removeprefix("file://")) for each in links.replace(",", " ").split()]
    files = [environment[name] for name in _CERTIFICATES if environment.get(name)]
    return Sources(
        tuple(dict.fromkeys(indexes)),
        tuple(folder for folder in folders if folder.is_dir()),
        next(iter(files), told.get("cert", "")),
        told.get("proxy", ""),
    )


def _default() -> str:
    """The index that pip and uv use unless they are told otherwise; empty if neither is here."""
    for text in _of_pip():
        if match := _OF_PIP.search(text):
            return f"{match[1].rstrip('/')}/simple"
    return _of_uv()


def _of_pip() -> Iterator[str]:
    """The module of pip that says it: of pip itself, or of the copy for new environments."""
    module = "_internal/models/index.py"
    # Debian keeps the copy elsewhere.
    copies = [Path(folder) for folder in (get_config_var("WHEEL_PKG_DIR"),) if folder]
    for name in ("pip", "ensurepip"):
        found = find_spec(name)
        for folder in map(Path, (found and found.submodule_search_locations) or ()):
            for file in folder.glob(module):
                yield file.read_text()
            copies.append(folder / "_bundled")
    for wheel in (wheel for folder in copies for wheel in folder.glob("pip-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            yield archive.read(f"pip/{module}").decode()


def _of_uv() -> str:
    """As its program has it, which installed this where there is no pip."""
    program = shutil.which("uv")
    if program is None:
        return ""
    with (
        open(program, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        match = _OF_UV.search(content)
        return match[0].decode() if match else ""


def _named(index: str) -> str:
    """uv's indexes may have a name: NAME=ADDRESS."""
    name, separator, address = index.partition("=")
    found = address if separator and "://" not in name and "://" in address else index
    return found.rstrip("/")


def _pip_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Of the files that pip reads, the later ones win."""
    told: dict[str, str] = {}
    own = environment.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return told
    home = Path(environment.get("HOME") or Path.home())
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    places = [
        *(Path(each, "pip/pip.conf") for each in reversed(_shared(environment))),
        Path("/etc/pip.conf"),
        home / "Library/Application Support/pip/pip.conf",
        home / ".pip/pip.conf",
        config / "pip/pip.conf",
        Path(sys.prefix, "pip.conf"),
        *([Path(own)] if own else []),
    ]
    for path in places:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(path.read_text())
        except (OSError, UnicodeDecodeError, configparser.Error):
            continue  # not there, or nothing that pip could read either
        for section in _SECTIONS:
            if parser.has_section(section):
                told |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    return told


def _shared(environment: Mapping[str, str]) -> list[str]:
    return (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
