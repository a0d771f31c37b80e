"""The git revision of a workdir, for scripts: `.git` itself is not uploaded by default.

Nothing that the repository's own configuration names is run. Git gets no file system monitor, no
hooks, no filters and no lock, and does not look into submodules. So a file that a filter turns into
another one (Git LFS) counts as changed if its time says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["COMMIT", "DIRTY", "revision"]

COMMIT = "SOJOURN_GIT_COMMIT"
DIRTY = "SOJOURN_GIT_DIRTY"

_WITHIN = 20.0  # seconds for one call
_INERT = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "safe.bareRepository=explicit")
_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}


def revision(workdir: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The commit that is checked out, and whether a tracked file differs from it, as variables.

    Without git, a repository or a commit: nothing. Dirty is what `git describe --dirty` calls so:
    files that git does not track do not count. If that cannot be told, only the commit is.
    """
    program = shutil.which("git", path=environment.get("PATH"))
    if not program:
        return {}
    git = _Git(program, workdir, environment)
    commit = git("rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return {}
    dirty = _dirty(git)
    return {COMMIT: commit.strip()} | ({DIRTY: dirty} if dirty else {})


def _dirty(git: _Git) -> str:
    """`true` or `false`; empty if it cannot be told."""
    keys = git("config", "--null", "--name-only", "--get-regexp", r"^filter\.", none=(1,))
    if keys is None or "=" in keys:  # no option can name such a filter
        return ""
    filters = {key.rpartition(".")[0] for key in keys.split("\0") if key}
    settings = [f"{name}.{key}={value}" for name in filters for key, value in _FILTER.items()]
    options = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    changes = git("status", *options, settings=settings)
    return "" if changes is None else "true" if changes else "false"


class _Git:
    """Calls git in a folder."""

    def __init__(self, program: str, folder: Path, environment: Mapping[str, str]) -> None:
        # Inside a hook, variables lead to the repository of the hook.
        own = {k: v for k, v in environment.items() if not k.startswith("GIT_")}
        self._environment = {
            **own,
            **{k: v for k, v in environment.items() if k.startswith("GIT_CONFIG_")},
            "GIT_ALLOW_PROTOCOL": "none",  # what a partial clone lacks is not fetched
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        self._command = [program, "--no-optional-locks", "--no-pager", "-C", os.fspath(folder)]

    def __call__(
        self, *arguments: str, settings: Sequence[str] = (), none: Sequence[int] = ()
    ) -> str | None:
        """What git prints; None if it fails. `none`: exit codes that mean an empty answer."""
        options = [word for setting in (*_INERT, *settings) for word in ("-c", setting)]
        try:
            ran = subprocess.run(
                [*self._command, *options, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_WITHIN,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        if ran.returncode in none:
            return ""
        return os.fsdecode(ran.stdout) if ran.returncode == 0 else None
