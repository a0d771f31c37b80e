"""Which forge a token is for: it goes to no other one.

    STATE/sojourn/forges.json    by which tokens, as their hashes, this computer launched runners

STATE is $XDG_STATE_HOME or ~/.local/state. Tokens themselves are kept nowhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.parse
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.core.errors import AuthError
from sojourn.core.userfolders import state_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["GENERAL", "find_token", "forge_of", "known_forges", "refuse_foreign", "remember"]

GENERAL = ("CML_TOKEN", "REPO_TOKEN", "repo_token")  # of whichever forge runners are launched at
_PORTS = {"http": 80, "https": 443}
_AT_MOST = 200  # tokens; the oldest are dropped


def forge_of(address: str) -> str:
    """The forge that an address leads to, as `scheme://host:port`; a host alone has HTTPS."""
    parts = urllib.parse.urlsplit(address if "://" in address else f"https://{address}")
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    return f"{parts.scheme}://{parts.hostname or ''}:{port}"


def find_token(
    driver: str, address: str, environment: Mapping[str, str], *, named: bool = True
) -> str:
    """The token of the first variable whose token is for this forge; none: empty.

    `named`: the user named the repository for this token, by a launch or in a configuration.
    Otherwise a general variable counts only in this forge's own CI, or if it has a token that this
    computer launched runners of this forge with.
    """
    forge = forge_of(address)
    named = named or forge in map(forge_of, _of_ci(environment))
    for token in filter(None, map(environment.get, GENERAL)):
        if named or forge in known_forges(token):
            return token
    own = forges.module_of(driver).TOKENS
    if forge not in _own_forges(driver, environment):
        return ""
    return next((environment[name] for name in own if environment.get(name)), "")


def _of_ci(environment: Mapping[str, str]) -> list[str]:
    found = (forges.module_of(each).repo_here(environment) for each in forges.DRIVERS)
    return [each for each in found if each]


def _own_forges(driver: str, environment: Mapping[str, str]) -> set[str]:
    """Which forges the driver's own variables are for: that of the CI that this program runs in,
    or that of a variable, or those that everybody knows."""
    module = forges.module_of(driver)
    told = [module.repo_here(environment), *(environment.get(each, "") for each in module.SERVERS)]
    server = next((each for each in told if each), "")
    return {forge_of(each) for each in ([server] if server else module.HOSTS)}


def refuse_foreign(driver: str, address: str, token: str) -> None:
    """Refuse a token that another kind of forge has made, as its first letters tell."""
    for other in forges.DRIVERS:
        prefixes = tuple(getattr(forges.module_of(other), "PREFIXES", ()))
        if other != driver and prefixes and token.startswith(prefixes):
            raise AuthError(
                f"The token is one of {other}, not of {driver}, which {address} is",
                hint=f"Set {GENERAL[0]} to a token of {urllib.parse.urlsplit(address).netloc}.",
            )


def known_forges(token: str) -> frozenset[str]:
    """The forges at which this computer launched runners with a token."""
    found = _read().get(_digest(token), [])
    return frozenset(each for each in found if isinstance(each, str))


def remember(token: str, address: str) -> None:
    """Note that a forge took a token. A folder that cannot be written is not an error."""
    digest, forge, known = _digest(token), forge_of(address), _read()
    forges_now = [*known.pop(digest, [])]
    known[digest] = [*forges_now, *([] if forge in forges_now else [forge])]
    kept = dict([*known.items()][-_AT_MOST:])
    with suppress(OSError):
        path = _path()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.touch(0o600)
        temporary.write_text(json.dumps(kept))
        temporary.replace(path)


def _read() -> dict[str, list[str]]:
    try:
        found = json.loads(_path().read_text())
    except (OSError, ValueError):  # absent or damaged: nothing is known
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in rows if isinstance(value, list)}


def _digest(token: str) -> str:
    return hashlib.sha256(f"sojourn forge token\0{token}".encode()).hexdigest()


def _path() -> Path:
    return state_home() / "sojourn" / "forges.json"
