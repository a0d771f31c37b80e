"""Root's part of a runner on a machine: what jobs left in their home leads it nowhere."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.core.runner import Runner
from sojourn.runners.script import runner_script

_ALONE = ["unshare", "--mount", "--propagation", "private"]
_USER = 54321
_BEGIN = """
mount --bind "$1/home" /home && mount --bind "$1/passwd" /etc/passwd &&
    mount --bind "$1/group" /etc/group && cd "$1/agent/workdir" && exec /bin/sh ../script
"""
# What a program does, as do jobs: it makes links of all names that it knows of.
_HOSTILE = """
id -u > /home/who/number
for home in "$HOME" /home/runner; do
  for name in .sojourn-jobs builds certificates.pem .arguments; do
    rm -rf "$home/$name" && ln -s /home/outside "$home/$name"
  done
done
for name in config.yaml .runner .credentials job-started.sh work bin; do
  [ -L "$name" ] || { rm -rf "$name" && ln -s "/home/outside/$name" "$name"; } 2>/dev/null
done
exit 0
"""
_NAMES = (
    *("number", "config.yaml", ".runner", ".credentials", "job-started.sh", "first", "now"),
    *("certificates.pem", ".arguments", "passwords"),
)
_PROGRAMS = {
    "gitea": ("gitea-runner-1",),
    "forgejo": ("forgejo-runner-1",),
    "github": ("run.sh", "config.sh"),
    "bitbucket": ("bin/start.sh",),
    "gitlab": (),
}
_CREDENTIALS = {
    "gitea": {"registration": "{}"},
    "forgejo": {"connection": "{}", "host_labels": "[]"},
    "github": {"registration_token": "t"},
    "bitbucket": dict.fromkeys(
        ("account_uuid", "repository_uuid", "runner_uuid", "client_id", "client_secret"), "x"
    ),
    "gitlab": {"gitlab_url": "https://example.com", "runner_token": "t"},
}


class _Computer:
    """A computer with a home folder and users of its own; nothing of this one changes."""

    def __init__(self, folder: Path, driver: str) -> None:
        self._folder, self._driver = folder, driver
        self.home, self._workdir = folder / "home", folder / "agent/workdir"
        self.outside = self.home / "outside"
        tools = self.home / "tools"
        for each in (self.outside, tools, self.home / "runner", self.home / "who"):
            each.mkdir(parents=True)
        for name in _NAMES:
            (self.outside / name).write_text("root's own\n")
            (self.outside / name).chmod(0o600)
        (self.home / "who").chmod(0o777)
        os.chown(self.home / "runner", _USER, _USER)
        passwd = f"root:x:0:0::/root:/bin/sh\nrunner:x:{_USER}:{_USER}::/home/runner:/bin/sh\n"
        (folder / "passwd").write_text(passwd)
        (folder / "group").write_text(f"root:x:0:\nrunner:x:{_USER}:\n")
        self._command(tools / "docker", "exit 1")
        java = 'cat "${1#@}" > /dev/null\nsleep 0.5\n' + _HOSTILE
        self._command(tools / "java", java)
        self._command(tools / "gitlab-runner", "exit 0")

    def _command(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def attempt(self) -> subprocess.CompletedProcess[str]:
        """All of the script of one attempt on it."""
        shutil.rmtree(self._folder / "agent", ignore_errors=True)
        state, program = self._workdir / "state", self._folder / "agent/program"
        for each in (state, program):
            each.mkdir(parents=True)
        for name in _PROGRAMS[self._driver]:
            text = _HOSTILE if "config" not in name else ": > .runner"
            self._command(program / name, text)
        (state / "program").write_text(f"{program}\n")
        (state / "port").write_text("4711\n")
        (state / "certificates").write_text("an authority\n")
        given = _CREDENTIALS[self._driver].items()
        (state / "credentials").write_text("".join(f"{k}={shlex.quote(v)}\n" for k, v in given))
        runner = Runner(self._driver, "https://example.com/a/b", "it", "tpi-it", single=True)
        settings = {"job_user": "runner", "hide_identity": "", "docker": "", "docker_volumes": ""}
        (self._folder / "agent/script").write_text(runner_script(runner, "", settings))
        path = f"/home/tools:{os.environ['PATH']}"
        return subprocess.run(
            [*_ALONE, "/bin/sh", "-c", _BEGIN, "sh", str(self._folder)],
            env={"PATH": path, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def look(self) -> dict[str, tuple[int, int, str]]:
        """What is there that is not the jobs'."""
        found = {}
        for path in (self.outside, *self.outside.rglob("*")):
            info = path.lstat()
            text = path.read_text() if path.is_file() else ""
            found[str(path)] = (info.st_mode, info.st_uid, text)
        return found


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], _Computer]:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("switches users and mounts: run the tests as root, with setpriv")
    tried = subprocess.run([*_ALONE, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("unshare --mount does not work here: run the tests on Linux, privileged")
    return lambda driver: _Computer(tmp_path, driver)


@pytest.mark.parametrize("driver", list(_PROGRAMS))
def test_root_follows_no_link_of_a_job_on_the_next_attempt(
    make: Callable[[str], _Computer], driver: str
) -> None:
    computer = make(driver)
    before = computer.look()
    runner = computer.home / "runner"
    for name in (".sojourn-jobs", "builds", "gitea", "forgejo", "runner-program"):
        (runner / name).symlink_to("/home/outside")
    for name in ("certificates.pem", ".arguments"):
        (runner / name).symlink_to(f"/home/outside/{name}")
    for _ in range(3):
        done = computer.attempt()
        assert done.returncode == 0, done.stdout + done.stderr
        assert computer.look() == before
    if driver != "gitlab":  # whose program is root's
        assert (computer.home / "who/number").read_text() == f"{_USER}\n"
    assert len(list(computer.home.glob("sojourn.*"))) == 1  # that of the last attempt
