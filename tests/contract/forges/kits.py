"""The forges that the suite knows: a simulated one for each driver."""

from __future__ import annotations

from collections.abc import Callable

from tests.simforge.gitea import SimGitea
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge

__all__ = ["FORGES"]

FORGES: dict[str, Callable[[], SimForge]] = {"gitea": SimGitea, "github": SimGitHub}
