"""Whose CI a runner serves, and with which token: as told, or as found here."""

from __future__ import annotations

import re
import subprocess
import urllib.parse
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sojourn import forges
from sojourn.core.errors import AuthError, InvalidInput
from sojourn.runners.tokens import GENERAL, find_token, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.context import Context
    from sojourn.forges.forge import Forge

__all__ = ["Target", "address_of", "find_place", "find_target", "no_token"]

_HERE = ("localhost", "127.0.0.1", "::1")
_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^/:]+):(?!//)(?P<path>.+)")


@dataclass(frozen=True)
class Target:
    """A repository, or a group of them, at a forge."""

    driver: str
    repo: str
    token: str = field(default="", repr=False)

    @property
    def is_in_clear(self) -> bool:
        """Whether the token goes over a network without encryption."""
        address = urllib.parse.urlsplit(self.repo)
        return address.scheme == "http" and address.hostname not in _HERE

    def settled(self, ctx: Context) -> Target:
        """The same, with the driver of what really runs there."""
        return replace(self, driver=forges.actual(ctx, self.driver, self.repo))

    def open(self) -> Forge:
        return forges.open_forge(self.driver, self.repo, self.token)


def find_target(
    driver: str, repo: str, token: str, environment: Mapping[str, str], *, named: bool = True
) -> Target:
    """`environment`: this program's variables, which tell of the CI that it runs in. `named`: as
    for `find_token`."""
    driver, address = find_place(driver, repo, environment)
    token = token or find_token(driver, address, environment, named=named)
    if not token:
        raise no_token(driver, address, environment)
    refuse_foreign(driver, address, token)
    return Target(driver, address, token)


def no_token(driver: str, address: str, environment: Mapping[str, str]) -> AuthError:
    """What to say if there is none for a forge. Those that are there are for others."""
    names = (*GENERAL, *forges.module_of(driver).TOKENS)
    others = [name for name in names if environment.get(name)]
    why = f": {' and '.join(others)} may be for another forge" if others else ""
    return AuthError(
        f"No token for {address}{why}",
        hint=f"Set {GENERAL[0]} or use --token, with a token of it that may register runners.",
    )


def find_place(driver: str, repo: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The same without the token: the driver, and the address of the repository."""
    if driver:
        forges.module_of(driver)  # refuses unknown ones before anything is asked
    found, address = _repo_here(environment) if not repo else ("", address_of(repo))
    driver = driver or _driver_of(address) or found or _driver_here(environment)
    if not driver:
        raise InvalidInput(
            "driver", f"cannot tell it from {address}; set it to {', '.join(forges.DRIVERS)}"
        )
    return driver, address


def _repo_here(environment: Mapping[str, str]) -> tuple[str, str]:
    """The driver, if it is known, and the address of the repository that we are in."""
    for driver in forges.DRIVERS:
        if repo := forges.module_of(driver).repo_here(environment):
            return driver, address_of(repo)
    done = subprocess.run(
        ["git", "config", "--get", "remote.origin.url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise InvalidInput("repo", "required: this folder has no git remote named origin")
    return "", address_of(done.stdout.strip())


def address_of(repo: str) -> str:
    """As browsers have it, without a user or password: git@host:owner/name.git is one, too."""
    if "://" not in repo and (match := _SCP.fullmatch(repo)):
        repo = f"https://{match['host']}/{match['path']}"
    parts = urllib.parse.urlsplit(repo)
    if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
        raise InvalidInput("repo", f"must be an address such as https://HOST/OWNER/REPO: {repo!r}")
    web = parts.scheme in ("http", "https")
    host = parts.netloc.rpartition("@")[2] if web else parts.hostname
    path = parts.path.rstrip("/").removesuffix(".git")
    return f"{parts.scheme if web else 'https'}://{host}{path}"


def _driver_of(address: str) -> str:
    host = urllib.parse.urlsplit(address).netloc
    hosts = {host: driver for driver in forges.DRIVERS for host in forges.module_of(driver).HOSTS}
    return hosts.get(host, "")


def _driver_here(environment: Mapping[str, str]) -> str:
    """Of a repository on a host of its own: most likely where this program's CI runs."""
    here = (d for d in forges.DRIVERS if forges.module_of(d).repo_here(environment))
    return next(here, "")
