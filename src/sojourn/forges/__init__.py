"""Where code is kept and its CI is run: one module a forge, loaded when it is asked for.

Computers register runners here, and machines look after theirs: so nothing but the standard
library is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.context import Context
    from sojourn.forges.forge import Forge

__all__ = ["DRIVERS", "actual", "lacking", "module_of", "open_forge", "options_of", "script_of"]

DRIVERS = ("github", "gitlab", "bitbucket", "gitea", "forgejo")


def open_forge(driver: str, repo: str, token: str = "") -> Forge:
    """The forge of a repository; does no I/O. Without a token, little can be done there."""
    return cast("Forge", module_of(driver).Driver(repo, token))


def actual(ctx: Context, driver: str, repo: str) -> str:
    """The driver of what really runs there: Forgejo answers to the name of Gitea, too."""
    ask = getattr(module_of(driver), "actual", None)
    return str(ask(ctx, repo)) if ask else driver


def script_of(driver: str) -> str:
    """The shell program that runs this forge's runner on a machine."""
    from importlib import resources  # not free to load, and the provider starts with this module

    files = resources.files("sojourn.forges")
    return files.joinpath("common.sh").read_text() + files.joinpath(f"{driver}.sh").read_text()


def options_of(driver: str) -> tuple[str, ...]:
    """The settings of a runner that not all forges have, and this one does."""
    return tuple(getattr(module_of(driver), "OPTIONS", ()))


def lacking(driver: str) -> Mapping[str, str]:
    """The settings of a runner that this forge cannot have, unlike others, and why."""
    found: Mapping[str, str] = getattr(module_of(driver), "LACKING", {})
    return found


def module_of(driver: str) -> Any:
    """What is known of a forge: its `Driver`, its hosts and its variables."""
    if driver not in DRIVERS:
        raise InvalidInput("driver", f"must be one of {', '.join(DRIVERS)}, got {driver!r}")
    return import_module(f"sojourn.forges.{driver}")
