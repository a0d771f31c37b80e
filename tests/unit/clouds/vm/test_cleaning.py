"""What a machine forgets before its disk becomes an image."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

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


def test_no_link_of_a_user_is_followed(tmp_path: Path) -> None:
    """By root: it would take lines from files, or empty them, that are not the user's."""
    root, ours = tmp_path / "root", f"ssh-ed25519 {KEY} tpi-x\n"
    kept = {"keys/authorized_keys": ours, "file": ours, "logs/file": "x"}
    for path, text in kept.items():
        put(tmp_path / "outside", path, text)
    put(root, "home/one/data")
    put(root, "var/log/service/log")
    put(root, "home/two/.ssh/authorized_keys2", ours + THEIRS)
    (root / "home/one/.ssh").symlink_to(tmp_path / "outside/keys")
    (root / "home/two/.ssh/authorized_keys").symlink_to(tmp_path / "outside/file")
    os.mkfifo(root / "home/two/.ssh/authorized_keys3")
    (root / "var/log/service/link").symlink_to(tmp_path / "outside/logs")
    (root / "var/log/service/file").symlink_to(tmp_path / "outside/file")
    forget(root, [KEY], "host")
    assert files(tmp_path / "outside") == kept
    assert (root / "home/two/.ssh/authorized_keys2").read_text() == THEIRS
    assert (root / "var/log/service/log").read_text() == ""


@pytest.mark.parametrize("racing", ["home/one/.ssh", "home/one/.ssh/authorized_keys"])
def test_what_becomes_a_link_while_it_is_cleaned_is_not_followed(
    tmp_path: Path, racing: str
) -> None:
    root, ours = tmp_path / "root", f"ssh-ed25519 {KEY} tpi-x\n"
    put(tmp_path / "outside", "authorized_keys", ours)
    put(root, "home/one/.ssh/authorized_keys", THEIRS)
    there, link = root / racing, root / "link"
    leads = tmp_path / "outside" if there.name == ".ssh" else tmp_path / "outside/authorized_keys"
    over = threading.Event()

    def race() -> None:
        while not over.is_set():
            there.rename(root / "away")
            link.symlink_to(leads)
            link.rename(there)
            there.unlink()
            (root / "away").rename(there)

    thread = threading.Thread(target=race)
    thread.start()
    try:
        for _ in range(300):
            forget(root, [KEY], "host")
    finally:
        over.set()
        thread.join()
    assert (tmp_path / "outside/authorized_keys").read_text() == ours


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
