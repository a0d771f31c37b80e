"""Starts Gitea, which needs git and a user that is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forge import binaries
from tests.forge.gitea import Gitea
from tests.support.waiting import patience, until

__all__ = ["running", "unavailable"]

_OWNER = "owner"
_SCOPES = "write:repository,write:organization,write:user"
_SETTINGS = """\
RUN_MODE = prod
RUN_USER = {user}
WORK_PATH = {folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
STATIC_ROOT_PATH = {folder}/program
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[indexer]
ISSUE_INDEXER_TYPE = db
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1
[actions]
ENABLED = true
[log]
LEVEL = warn
"""


def unavailable() -> str | None:
    """Why there can be no Gitea here, and what to do about it."""
    if not binaries.built():
        return "Gitea is not built: run `make forge`"
    if not shutil.which("git"):
        return "Gitea needs git: install it"
    return None


@contextmanager
def running() -> Iterator[Gitea]:
    """With an empty data folder of its own, until the end of the block."""
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder = tempfile.TemporaryDirectory(prefix="sojourn-forge-")
    with folder, _running(Path(folder.name), user) as gitea:
        yield gitea


@contextmanager
def _running(home: Path, user: pwd.struct_passwd) -> Iterator[Gitea]:
    # The cache may be in a folder that the user cannot enter.
    shutil.copytree(binaries.folder(), home / "program", copy_function=_link)
    port = _free_port()
    settings = home / "app.ini"
    settings.write_text(_SETTINGS.format(user=user.pw_name, folder=home, port=port))
    for path in (home, settings) if os.geteuid() == 0 else ():
        os.chown(path, user.pw_uid, user.pw_gid)
    program = _Program(home, settings, user)
    program.run("migrate")
    token = _make_owner(program)
    with program.serving(home / "output") as process:
        gitea = Gitea(f"http://127.0.0.1:{port}", token, _OWNER)
        until(lambda: process.poll() is not None or gitea.is_up(), 60)
        if process.poll() is not None:
            raise RuntimeError(f"Gitea ended: {(home / 'output').read_text()[-2000:]}")
        yield gitea


class _Program:
    """Gitea's own, as a user that is not root."""

    def __init__(self, home: Path, settings: Path, user: pwd.struct_passwd) -> None:
        self._command = [str(home / "program" / "gitea"), "--config", str(settings)]
        self._home = home
        self._environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "USER": user.pw_name,
            "TMPDIR": str(home),
        }
        self._user = user if os.geteuid() == 0 else None

    def run(self, *arguments: str) -> str:
        done = self._start([*self._command, *arguments], subprocess.PIPE)
        said, _ = done.communicate(timeout=patience(120))
        if done.returncode:
            raise RuntimeError(f"gitea {arguments[0]} failed: {said.decode()[-2000:]}")
        return said.decode()

    @contextmanager
    def serving(self, output: Path) -> Iterator[subprocess.Popen[bytes]]:
        with output.open("wb") as file:
            process = self._start([*self._command, "web"], file.fileno())
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(patience(30))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        user = self._user
        return subprocess.Popen(
            command,
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def _make_owner(program: _Program) -> str:
    name = ("--username", _OWNER)
    mail = ("--email", f"{_OWNER}@example.org", "--must-change-password=false")
    program.run("admin", "user", "create", *name, "--random-password", *mail)
    token = ("admin", "user", "generate-access-token", *name, "--raw", "--token-name", "tests")
    return program.run(*token, "--scopes", _SCOPES).split()[-1]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
