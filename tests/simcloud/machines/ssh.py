"""The SSH server and sudo of machines, as cloud images have them, and who may log in.

The programs are of the host, or were fetched when the tests were set up, see `tests.simcloud.debs`.
The server is started by the first connection, as in Ubuntu 24.04, so that machines boot no slower:
a boot makes the key of the host and opens the port. How a client gets to a machine does not belong
here, see `road`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.simcloud import debs
from tests.simcloud.machines import image
from tests.simcloud.machines.spec import Login

PORT = 22
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
_USR = Path("/usr")
_FETCHED = Path(sys.prefix) / "debs"  # `make` puts them there
_SEPARATED = "sshd"  # whom the server becomes while it does not know who is there
_FIRST_PERSON = 1000
_LOG = "/var/log/auth.log"

_FILES: Mapping[str, str] = {
    # What PAM does with the environment, and systemd with the log, is set here: without them a
    # log-in takes no service of the machine, and nothing of it gets on the console.
    "etc/ssh/sshd_config": f"""\
HostKey {HOST_KEY}
KbdInteractiveAuthentication no
PasswordAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
SetEnv PATH={image.PATH}
Subsystem sftp /usr/lib/openssh/sftp-server
UseDNS no
UsePAM no
""",
    "etc/sudoers": f"""\
Defaults env_reset
Defaults secure_path="{image.PATH}"
Defaults !syslog, logfile={_LOG}, loglinelen=0
root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
""",
    "etc/pam.d/sudo": """\
auth required pam_deny.so
account required pam_permit.so
session required pam_permit.so
""",
    "etc/systemd/system/ssh-keygen.service": f"""\
[Unit]
Description=Key of the SSH server
ConditionPathExists=!{HOST_KEY}

[Service]
Type=oneshot
ExecStart=ssh-keygen -q -t ed25519 -N "" -C "" -f {HOST_KEY}
StandardOutput=file:/dev/console
StandardError=inherit
RemainAfterExit=yes
""",
    "etc/systemd/system/ssh.socket": f"""\
[Unit]
Description=SSH server socket

[Socket]
ListenStream={PORT}
""",
    # After the network, so that it is stopped before and clients are told; with all sessions, as
    # logind does it where there is one.
    "etc/systemd/system/ssh.service": f"""\
[Unit]
Description=SSH server
Wants=ssh-keygen.service
After=ssh-keygen.service network.target

[Service]
Type=notify
ExecStart=/usr/sbin/sshd -D -e
RuntimeDirectory=sshd
StandardOutput=null
StandardError=append:{_LOG}
""",
}
_WANTED = "etc/systemd/system/{}.wants/{}"
_LISTENS = (b"sd_listen_fds", b"LISTEN_FDS")  # in a server that can take a socket from systemd


def unavailable() -> str | None:
    """Why machines have no SSH server, or nobody can use it, and what to do about it; or None."""
    missing = debs.missing(_USR, _FETCHED)
    if missing:
        return (
            f"machines need programs that are missing: apt install {' '.join(missing)}, "
            f"or python -m tests.simcloud.debs {_FETCHED}"
        )
    if shutil.which("ssh") is None:
        return "ssh is missing: apt install openssh-client"
    return None


def install(folder: Path) -> None:
    """Add the server to the image in this folder, if there is one."""
    if unavailable():
        return
    root, usr = folder / "root", folder / "usr"
    if _FETCHED.is_dir():
        shutil.copytree(_FETCHED, usr, symlinks=True, dirs_exist_ok=True)
    for path, text in _FILES.items():
        image.put(root, path, text.encode(), 0o440 if path == "etc/sudoers" else 0o644)
    server = next(layer / "sbin/sshd" for layer in (usr, _USR) if (layer / "sbin/sshd").exists())
    code = server.read_bytes()
    sockets = any(mark in code for mark in _LISTENS)
    for target, unit in (
        ("multi-user.target", "ssh-keygen.service"),
        ("sockets.target", "ssh.socket") if sockets else ("multi-user.target", "ssh.service"),
    ):
        image.make_link(root, _WANTED.format(target, unit), f"../{unit}")
    image.make_folder(root, "etc/sudoers.d")
    accounts = _Accounts(root)
    if _SEPARATED not in accounts.users:
        accounts.add(_SEPARATED, accounts.free(range(100, 999)), "/run/sshd", "/usr/sbin/nologin")
    accounts.write(root)


def add_logins(folder: Path, written: Path, logins: Sequence[Login]) -> None:
    """Make the users of a machine, on the disk that it writes to: like cloud-init, before it."""
    if not logins:
        return
    base = folder / "root"
    former = (written / "etc/passwd").exists()  # of an image that was made from a machine
    accounts = _Accounts(written if former else base)
    rules = ""
    for login in logins:
        if former and login.user in accounts.users:
            _add_keys(written / f"home/{login.user}/.ssh/authorized_keys", login.keys)
            rules += f"{login.user} ALL=(ALL) NOPASSWD:ALL\n"
            continue
        assert login.user not in accounts.users, f"{login.user} is a user of the system"
        home = f"/home/{login.user}"
        number = accounts.free(range(_FIRST_PERSON, 60000))
        accounts.add(login.user, number, home, "/bin/bash")
        _make_home(base, written, home.strip("/"), number, login.keys)
        rules += f"{login.user} ALL=(ALL) NOPASSWD:ALL\n"
    accounts.write(written)
    image.put(written, "etc/sudoers.d/90-cloud-init-users", rules.encode(), 0o440)


def _add_keys(file: Path, keys: Sequence[str]) -> None:
    """As cloud-init does it: what is there stays."""
    with open(file, "a") as lines:
        lines.writelines(f"{key.strip()}\n" for key in keys)


def _make_home(base: Path, written: Path, home: str, owner: int, keys: Sequence[str]) -> None:
    image.make_folder(written, "home")
    skeleton = base / "etc" / "skel"
    if skeleton.is_dir():
        shutil.copytree(skeleton, written / home, symlinks=True)
    lines = "".join(f"{key.strip()}\n" for key in keys)
    image.put(written, f"{home}/.ssh/authorized_keys", lines.encode(), 0o600)
    image.make_folder(written, f"{home}/.ssh", 0o700)
    image.make_folder(written, home, 0o750)
    for parent, folders, files in os.walk(written / home):
        for path in (parent, *(os.path.join(parent, name) for name in (*folders, *files))):
            os.chown(path, owner, owner, follow_symlinks=False)


class _Accounts:
    """The users and groups of a tree, to be written to another one."""

    def __init__(self, tree: Path) -> None:
        self._text = {
            name: (tree / "etc" / name).read_text() for name in ("passwd", "group", "shadow")
        }

    @property
    def users(self) -> list[str]:
        return [line.split(":")[0] for line in self._text["passwd"].splitlines()]

    def free(self, numbers: range) -> int:
        """A number that no user and no group has."""
        lines = (self._text["passwd"] + self._text["group"]).splitlines()
        taken = {int(line.split(":")[2]) for line in lines}
        return next(number for number in numbers if number not in taken)

    def add(self, user: str, number: int, home: str, shell: str) -> None:
        """With a group of the same name. There is no password, and no lock either."""
        self._text["passwd"] += f"{user}:x:{number}:{number}::{home}:{shell}\n"
        self._text["group"] += f"{user}:x:{number}:\n"
        self._text["shadow"] += f"{user}:*:19000:0:99999:7:::\n"

    def write(self, tree: Path) -> None:
        for name, text in self._text.items():
            image.put(tree, f"etc/{name}", text.encode(), 0o640 if name == "shadow" else 0o644)
