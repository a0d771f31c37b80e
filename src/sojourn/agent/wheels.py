"""The wheels that machines need: exactly those of `wheels.json`, whoever serves them.

They are kept in CACHE/sojourn/wheels, each in a folder that is named by its hash, and their hashes
are looked at whenever they are used.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import tempfile
import urllib.error
import urllib.request
from base64 import b64encode
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from sojourn.agent.indexes import sources
from sojourn.core.errors import IntegrityError, InvalidInput, SojournError, Transient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sojourn.agent.indexes import Sources

__all__ = ["Wheel", "fetch", "hashes", "locked", "pythons"]

_LOCK = "wheels.json"
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_LARGEST = 64 << 20  # bytes, of a wheel or of an index's page
_PATIENCE = 60.0  # seconds without an answer


class Wheel(NamedTuple):
    """One file of the lock. Its hash is all that is trusted of it."""

    file: str
    sha256: str

    @property
    def name(self) -> str:
        return self.file.partition("-")[0]


def pythons() -> tuple[str, ...]:
    """The versions that a machine may have, such as "312"."""
    return tuple(sorted({name.rpartition("-")[2] for name in _lock()}))


def hashes() -> list[str]:
    """Of all of them."""
    return sorted({sha256 for files in _lock().values() for sha256 in files.values()})


def locked(python: str, architecture: str) -> list[Wheel]:
    """Those for a Python on an architecture."""
    found = _lock().get(f"{architecture}-{python}")
    if found is None:
        raise InvalidInput(
            "image", f"Python {python[0]}.{python[1:]} on {architecture} is not supported"
        )
    return [Wheel(file, sha256) for file, sha256 in found.items()]


def _lock() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath(_LOCK).read_text()
    found: dict[str, dict[str, str]] = json.loads(text)
    return found


def fetch(
    wheels: Sequence[Wheel], cache: Path, environment: Mapping[str, str] = os.environ
) -> list[Path]:
    """Their files; those that are in the cache are not fetched."""
    told = sources(environment)
    return [_kept(wheel, cache) or _fetched(wheel, cache, told) for wheel in wheels]


def _kept(wheel: Wheel, cache: Path) -> Path | None:
    path = cache / wheel.sha256 / wheel.file
    try:
        whole = _is(wheel, path.read_bytes())
    except OSError:
        return None
    return path if whole else None  # what was damaged since is fetched again


def _fetched(wheel: Wheel, cache: Path, told: Sources) -> Path:
    content = _found(wheel, told)
    folder = cache / wheel.sha256
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
        unfinished.write(content)
    os.replace(unfinished.name, folder / wheel.file)
    return folder / wheel.file


def _found(wheel: Wheel, told: Sources) -> bytes:
    for folder in told.folders:
        path = folder / wheel.file
        if path.is_file() and _is(wheel, content := path.read_bytes()):
            return content
    problems: list[SojournError] = []
    for index in told.indexes:
        try:
            return _from(index, wheel, told)
        except SojournError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    raise Transient(
        f"Could not find {wheel.file}, required on machines: no package index is configured",
        hint="Set PIP_INDEX_URL, or put the file into a folder that PIP_FIND_LINKS names.",
    )


def _from(index: str, wheel: Wheel, told: Sources) -> bytes:
    opener = _opener(told)
    shown = _without_user(index)
    try:
        page, address, kind = _get(opener, f"{index}/{wheel.name}/", index)
        files = _json_files(page) if kind.endswith("json") else _html_files(page)
        links = {name: urljoin(address, link) for name, link in files.items()}
        if wheel.file not in links:
            raise Transient(
                f"{shown} does not have {wheel.file}, required on machines",
                hint="Set PIP_INDEX_URL to an index that has it.",
            )
        content, _, _ = _get(opener, links[wheel.file], index)
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise Transient(
            f"Could not download {wheel.file}, required on machines, from {shown}: {error}",
            hint="Check your network, proxy and PIP_INDEX_URL.",
        ) from error
    if not _is(wheel, content):
        raise IntegrityError(
            f"{shown} has a different {wheel.file}: expected SHA-256 {wheel.sha256}, "
            f"got {hashlib.sha256(content).hexdigest()}",
            hint="Nothing was uploaded. Set PIP_INDEX_URL to an index that you trust.",
        )
    return content


def _get(opener: urllib.request.OpenerDirector, url: str, index: str) -> tuple[bytes, str, str]:
    """What is there, its real address and its kind. The index's password goes to its host alone."""
    request = urllib.request.Request(_bare(url), headers={"Accept": _ACCEPT})  # noqa: S310
    if request.type not in ("http", "https"):
        raise ValueError(f"unsupported address {_without_user(url)}")
    owner, asked = urlsplit(index), urlsplit(url)
    if owner.username and (owner.scheme, owner.hostname, owner.port) == (
        asked.scheme,
        asked.hostname,
        asked.port,
    ):
        login = f"{unquote(owner.username)}:{unquote(owner.password or '')}"
        secret = b64encode(login.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {secret}")
    with opener.open(request, timeout=_PATIENCE) as answer:
        content: bytes = answer.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("the answer is too long")
        return content, answer.geturl(), answer.headers.get_content_type()


def _opener(told: Sources) -> urllib.request.OpenerDirector:
    trusted = ssl.create_default_context(cafile=told.certificates or None)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=trusted)]
    if told.proxy:
        proxies = dict.fromkeys(("http", "https"), told.proxy)
        handlers.append(urllib.request.ProxyHandler(proxies))
    return urllib.request.build_opener(*handlers)


def _bare(url: str) -> str:
    parts = urlsplit(urldefrag(url).url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


_without_user = _bare


def _is(wheel: Wheel, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == wheel.sha256


def _json_files(page: bytes) -> dict[str, str]:
    return {each["filename"]: each["url"] for each in json.loads(page)["files"]}


def _html_files(page: bytes) -> dict[str, str]:
    reader = _Links()
    reader.feed(page.decode("utf-8", "replace"))
    return reader.found


class _Links(HTMLParser):
    """Of an index that knows no JSON: the files that its page leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if tag == "a" and link:
            self.found[unquote(urlsplit(link).path.rpartition("/")[2])] = link
