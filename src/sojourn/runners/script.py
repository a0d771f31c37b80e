"""The script of a runner's task: what the user has to say, then the forge's program."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sojourn import forges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.runner import Runner

__all__ = ["runner_script"]

_STARTUP = """\
startup=$(mktemp)
printf '%s' {text} > "$startup"
chmod 755 "$startup"
"$startup" || {{ echo "sojourn: the startup script ended with exit code $?"; exit 1; }}
rm -f "$startup"
"""


def runner_script(runner: Runner, startup: str, settings: Mapping[str, str]) -> str:
    """`settings`: what else the forge's shell program expects, such as `job_user`."""
    given = {
        "runner_name": runner.name,
        "runner_url": runner.repo,
        "runner_labels": ",".join(runner.all_labels),
        "single": "1" if runner.single else "",
        "idle_timeout": str(runner.idle_timeout),
        **settings,
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
    before = _STARTUP.format(text=shlex.quote(startup)) if startup.strip() else ""
    return "\n".join(["#!/bin/sh", before, *lines, forges.script_of(runner.driver)])
