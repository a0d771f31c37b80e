"""What a machine forgets before its disk becomes an image."""

from __future__ import annotations

from pathlib import Path

from sojourn.clouds.vm.cleaning import keys_of
from sojourn.clouds.vm.on_machine.cleaning import forget, without
from sojourn.core.interfaces import KeyPair
from sojourn.core.task import Task

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIOurs"
THEIRS = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAItheirs me@home\n"


def put(root: Path, path: str, text: str = "x") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def files(root: Path) -> dict[str, str]:
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in found}


def test_what_is_of_the_task_goes_and_all_else_stays(tmp_path: Path) -> None:
    kept = {"etc/tools": "x", "home/me/data": "x", "opt/tool/lib": "x", "root/.profile": "x"}
    for path in (
        *("opt/sojourn/settings.json", "etc/systemd/system/sojourn.service"),
        *("etc/systemd/system/timers.target.wants/sojourn-end.timer", "var/lib/cloud/instance/id"),
        *("etc/ssh/ssh_host_rsa_key", "etc/ssh/ssh_host_rsa_key.pub", "var/log/journal/1/a"),
        *("root/.bash_history", "home/me/.python_history", "tmp/.hidden", "tmp/a/b", "var/tmp/c"),
        *("var/lib/waagent/ovf-env.xml", "var/lib/waagent/provisioned"),
        *kept,
    ):
        put(tmp_path, path)
    put(tmp_path, "etc/machine-id", "1234\n")
    put(tmp_path, "var/log/syslog", "secret")
    put(tmp_path, "etc/hostname", "tpi-x-1\n")
    put(tmp_path, "etc/hosts", "127.0.0.1 localhost\n10.0.0.1 tpi-x-1\n")
    ours = f'command="exit" ssh-ed25519 {KEY} tpi-x\n'
    for home in ("root", "home/me"):
        put(tmp_path, f"{home}/.ssh/authorized_keys", ours + THEIRS)
    forget(tmp_path, [KEY], "tpi-x-1")
    assert files(tmp_path) == kept | {
        "etc/machine-id": "",
        "etc/hostname": "localhost\n",
        "etc/hosts": "127.0.0.1 localhost\n",
        "var/log/syslog": "",
        "root/.ssh/authorized_keys": THEIRS,
        "home/me/.ssh/authorized_keys": THEIRS,
    }
    assert (tmp_path / "tmp").is_dir()


def test_a_tree_without_any_of_it_is_clean(tmp_path: Path) -> None:
    forget(tmp_path, [], "host")
    assert files(tmp_path) == {}


def test_a_key_is_a_whole_word() -> None:
    text = f"ssh-ed25519 {KEY}x me\n".encode()
    assert without(text, [KEY]) == text


def test_all_keys_of_a_task_are_known() -> None:
    task = Task("#!/bin/sh", cloud="aws", options={"ssh_key": "ssh-rsa own comment"})
    assert keys_of(KeyPair("ssh-ed25519 ours tpi-x", ""), task) == ["ours", "own"]
    assert keys_of(None, Task("#!/bin/sh")) == []
