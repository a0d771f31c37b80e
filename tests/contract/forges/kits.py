"""The forges that the suite knows: a simulated one for each driver."""

from __future__ import annotations

from collections.abc import Callable

from tests.simforge.bitbucket import SimBitbucket
from tests.simforge.forgejo import SimForgejo
from tests.simforge.gitea import SimGitea
from tests.simforge.github import SimGitHub
from tests.simforge.gitlab import SimGitLab
from tests.simforge.server import SimForge

__all__ = ["FORGES"]

FORGES: dict[str, Callable[[], SimForge]] = {
    "bitbucket": SimBitbucket,
    "forgejo": SimForgejo,
    "gitea": SimGitea,
    "github": SimGitHub,
    "gitlab": SimGitLab,
}
