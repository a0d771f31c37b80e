"""The tools that are compared: the command of each for the same piece of work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.server import S3, find_program

__all__ = ["OURS", "S5CMD", "Tool", "installed", "our_command", "our_environment", "run"]

OURS = "sojourn"
S5CMD = "s5cmd"
_ROOT = Path(__file__).parent.parent
Command = Callable[[str, str], list[str]]


@dataclass(frozen=True)
class Tool:
    """How a tool brings a folder to a bucket, back, and up to date; each gets (bucket, folder)."""

    name: str
    up: Command
    down: Command
    sync: Command


def installed() -> tuple[list[Tool], list[str]]:
    """The tools that can be run here, ours last, and the names of those that cannot."""
    tools, missing = [], []
    rclone, s5cmd = find_program("rclone"), find_program("s5cmd")
    if rclone:
        tools += [_rclone("rclone", rclone), _rclone("rclone x32", rclone, "--transfers", "32")]
    else:
        missing.append("rclone")
    if s5cmd:
        tools.append(_s5cmd(s5cmd))
    else:
        missing.append("s5cmd")
    return [*tools, _ours()], missing


def run(command: list[str], environment: dict[str, str]) -> None:
    """Run a command to its end; it must succeed."""
    done = subprocess.run(command, env=environment, capture_output=True, cwd=_ROOT)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode(errors='replace')[-2000:]}")


def our_command(verb: str, url: str, folder: str) -> list[str]:
    return [sys.executable, "-m", "bench.ours", verb, url, folder]


def our_environment(server: S3 | None = None) -> dict[str, str]:
    """Like this process's own, so that its `sojourn` is the one that is measured.

    It is compiled once, as an installed one is, and not in every process.
    """
    environment = os.environ | (server.environment if server else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _rclone(name: str, program: str, *options: str) -> Tool:
    return Tool(
        name,
        up=lambda bucket, folder: [program, "copy", *options, folder, f"s3:{bucket}"],
        down=lambda bucket, folder: [program, "copy", *options, f"s3:{bucket}", folder],
        sync=lambda bucket, folder: [program, "sync", *options, folder, f"s3:{bucket}"],
    )


def _s5cmd(program: str) -> Tool:
    return Tool(
        S5CMD,
        up=lambda bucket, folder: [program, "cp", f"{folder}/", f"s3://{bucket}/"],
        down=lambda bucket, folder: [program, "cp", f"s3://{bucket}/*", f"{folder}/"],
        sync=lambda bucket, folder: [program, "sync", f"{folder}/", f"s3://{bucket}/"],
    )


def _ours() -> Tool:
    def push(bucket: str, folder: str) -> list[str]:
        return our_command("push", f"s3://{bucket}", folder)

    return Tool(
        OURS,
        up=push,
        down=lambda bucket, folder: our_command("restore", f"s3://{bucket}", folder),
        sync=push,
    )
