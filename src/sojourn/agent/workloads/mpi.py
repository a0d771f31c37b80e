"""MPI in a gang: rank 0 runs the script, and `mpirun` there finds the machines of all others.

Machines of their own are reached by SSH: each of the others runs a server for this round alone, as
the user of the script and with keys that were made for it. Private keys never leave a machine: the
public ones travel with what the members tell of themselves. Machines that are all on one computer
need neither keys nor a network, see `remote_shell`.
"""

from __future__ import annotations

import getpass
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.disk import remove_tree
from sojourn.agent.process import CannotStart
from sojourn.agent.shared import Shared
from sojourn.agent.workloads.gang import Gang
from sojourn.agent.workloads.servers import await_servers

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from sojourn.agent.workloads.workload import Host
    from sojourn.core.context import Context
    from sojourn.core.gang import Mpi
    from sojourn.storage.gangs import Member

__all__ = ["MpiGang", "for_open_mpi", "ssh_arguments"]

_NOT_FOUND = 127  # a shell's exit code
_PACKAGE = Path(__file__).parents[3]
_SERVER = """\
#!/bin/sh
# Serves the other machines of this gang until the program on rank 0 has ended.
for sshd in "$(command -v sshd)" /usr/sbin/sshd /usr/local/sbin/sshd /sbin/sshd; do
  [ ! -x "$sshd" ] || break
done
[ -x "$sshd" ] || {{
  echo "sojourn: MPI needs an SSH server on every machine; install openssh-server in its image" >&2
  exit 127
}}
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
export -p >{folder}/environment
exec "$sshd" -D -e -f {folder}/sshd_config
"""
_ENTER = """\
#!/bin/sh
. {folder}/environment
cd {workdir}
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""
_SERVER_CONFIG = """\
AuthorizedKeysFile {folder}/authorized_keys
ForceCommand {folder}/enter
HostKey {folder}/host
ListenAddress {address}
LogLevel ERROR
MaxStartups 1000
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
Port {port}
StrictModes no
UsePAM no
X11Forwarding no
"""
_CLIENT = """\
Host {names}
  HostName {address}
  HostKeyAlias {alias}
  Port {port}
  User {user}
"""
_CLIENT_COMMON = """\
Host *
  BatchMode yes
  ConnectionAttempts 60
  ConnectTimeout 10
  IdentitiesOnly yes
  IdentityFile {folder}/client
  LogLevel ERROR
  StrictHostKeyChecking yes
  UserKnownHostsFile {folder}/known_hosts
"""
_HERE = """\
#!/bin/sh
if [ "$1" = {own} ]; then
  shift
  exec /bin/sh -c "$*"
fi
PYTHONPATH={package} exec {python} -m sojourn.agent.remote_shell run {machines} "$@"
"""


class MpiGang(Gang):
    """A gang whose script runs on rank 0 only; the other ranks serve it until it has ended.

    Where the cloud itself starts the servers, they are none of our business.
    """

    _leads = True

    def __init__(self, host: Host, mpi: Mpi) -> None:
        super().__init__(host)
        self._machine: _Machine | None = None
        if not host.config.cloud_mpi:
            together = host.config.together
            self._machine = _Machine(mpi, self._rank, host.folder, together=together)

    def _keys(self) -> Mapping[str, str]:
        return self._machine.keys() if self._machine else {}

    def prepare(self, ctx: Context, environment: Mapping[str, str]) -> None:
        """Rank 0 starts when it can reach all others."""
        if self._machine and self._rank == 0:
            self._machine.await_others(self._members, ctx.cancelled)

    def environment(self) -> Mapping[str, str]:
        """Those of a gang, and where `mpirun` finds all machines."""
        variables = super().environment()
        if self._machine and self._rank == 0:
            return {**variables, **self._machine.lead(self._members)}
        return variables

    def program(self) -> str:
        """The user's script on rank 0, else a server."""
        if self._machine and self._rank > 0:
            return self._machine.serve(self._members)
        return super().program()


class _Machine:
    """One machine of a gang with MPI.

    `folder`: of this machine. `together`: all machines are on this very computer.
    """

    def __init__(self, mpi: Mpi, rank: int, folder: Path, *, together: bool) -> None:
        self._mpi = mpi
        self._rank = rank
        self._workdir = folder / "workdir"
        self._folder = folder / "gang" / "mpi"
        self._together = together

    def keys(self) -> dict[str, str]:
        """What the others need to know of this machine: a folder, or public keys."""
        remove_tree(self._folder)
        self._folder.parents[1].mkdir(parents=True, exist_ok=True)  # the workdir is restored later
        Shared(self._folder.parents[1]).make(f"{self._folder.parent.name}/{self._folder.name}")
        Shared(self._folder.parent).make(self._folder.name, 0o700)
        if self._together:
            return {"folder": str(self._folder)}
        return {"host": self._make_key("host"), "user": getpass.getuser(), **self._client_key()}

    def _client_key(self) -> dict[str, str]:
        """Only rank 0 logs in anywhere."""
        return {"client": self._make_key("client")} if self._rank == 0 else {}

    def _make_key(self, name: str) -> str:
        file = self._folder / name
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sojourn", "-f", str(file)]
        try:
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            raise CannotStart(
                "MPI needs OpenSSH on every machine; install openssh-client and openssh-server "
                "in its image",
                _NOT_FOUND,
            ) from None
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            raise CannotStart(f"could not make a key for MPI: {said}", 1) from error
        return file.with_suffix(".pub").read_text().strip()

    def serve(self, members: Sequence[Member]) -> str:
        """The script of a machine that waits for what rank 0 wants."""
        if self._together:
            program = [sys.executable, "-m", "sojourn.agent.remote_shell", "serve"]
            words = shlex.join([*program, str(self._folder)])
            return f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(_PACKAGE))} exec {words}\n"
        own, leader = members[self._rank], members[0]
        folder = shlex.quote(str(self._folder))
        settings = {"folder": self._folder, "address": own.address, "port": own.port}
        self._write("sshd_config", _SERVER_CONFIG.format(**settings))
        options = "no-agent-forwarding,no-port-forwarding,no-X11-forwarding"
        self._write("authorized_keys", f"{options} {leader.keys['client']}\n")
        enter = _ENTER.format(folder=folder, workdir=shlex.quote(str(self._workdir)))
        self._write("enter", enter, mode=0o700)
        return _SERVER.format(folder=folder)

    def lead(self, members: Sequence[Member]) -> dict[str, str]:
        """The variables by which `mpirun` on rank 0 finds all machines, without any option."""
        slots = self._mpi.slots
        hosts = self._write("hosts", "".join(f"{m.address} slots={slots}\n" for m in members))
        way = self._through_shell(members) if self._together else self._through_ssh(members)
        return {**for_open_mpi(str(hosts), slots), **way}

    def await_others(self, members: Sequence[Member], stopped: threading.Event) -> None:
        """Return when the servers of all others answer, or after a while."""
        if not self._together:  # else whoever asks waits
            others = [(m.address, m.port) for m in members if m.rank != self._rank]
            await_servers(others, stopped)

    def _through_ssh(self, members: Sequence[Member]) -> dict[str, str]:
        blocks = [
            _CLIENT.format(
                names=f"rank-{member.rank} {member.address}",
                address=member.address,
                alias=f"rank-{member.rank}",
                port=member.port,
                user=member.keys["user"],
            )
            for member in members
        ]
        known = "".join(f"rank-{m.rank} {m.keys['host']}\n" for m in members)
        self._write("known_hosts", known)
        text = "".join(blocks) + _CLIENT_COMMON.format(folder=self._folder)
        config = self._write("ssh_config", text)
        return {**ssh_arguments(f"-F {config}"), "SOJOURN_SSH_CONFIG": str(config)}

    def _through_shell(self, members: Sequence[Member]) -> dict[str, str]:
        """Open MPI takes them for other computers: memory that they share is not theirs to use."""
        own = members[self._rank].address
        machines = "".join(f"{m.address} {m.keys['folder']}\n" for m in members)
        text = _HERE.format(
            own=own,
            package=shlex.quote(str(_PACKAGE)),
            python=shlex.quote(sys.executable),
            machines=shlex.quote(str(self._write("machines", machines))),
        )
        shell = str(self._write("shell", text, mode=0o700))
        return {
            "OMPI_MCA_plm_rsh_agent": shell,
            "PRTE_MCA_plm_ssh_agent": shell,
            "OMPI_MCA_btl": "self,tcp",
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl_tcp_if_include": _LOOPBACK,
            "OMPI_MCA_oob_tcp_if_include": _LOOPBACK,
            "PRTE_MCA_prte_if_include": _LOOPBACK,
        }

    def _write(self, name: str, text: str, mode: int = 0o600) -> Path:
        file = self._folder / name
        Shared(self._folder).write(name, text.encode(), mode)
        return file


_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"


def for_open_mpi(hosts: str, slots: int) -> dict[str, str]:
    """Where Open MPI finds all machines: version 4 and version 5 have other names for it."""
    settings = {
        "default_hostfile": hosts,
        "keep_fqdn_hostnames": "true",
        "set_default_slots": str(slots),
    }
    return {
        **{f"OMPI_MCA_orte_{name}": value for name, value in settings.items()},
        **{f"PRTE_MCA_prte_{name}": value for name, value in settings.items()},
        # Rank 0 logs in everywhere itself: no other machine has a key.
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        # A machine is there for this task alone, and containers often have no other user.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def ssh_arguments(arguments: str) -> dict[str, str]:
    """What Open MPI gives to `ssh`."""
    return {"OMPI_MCA_plm_rsh_args": arguments, "PRTE_MCA_plm_ssh_args": arguments}
