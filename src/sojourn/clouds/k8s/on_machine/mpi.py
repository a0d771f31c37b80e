"""MPI programs in pods: the first rank's script calls `mpirun`, and the others wait for it.

The keys are mpi-operator's. Programs refuse keys that belong to others, so each copies them. All
hosts are addresses: nothing depends on the cluster's DNS, or on how soon it learns of new pods.
"""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.shared import Shared
from sojourn.agent.workloads.mpi import for_open_mpi, ssh_arguments
from sojourn.agent.workloads.servers import await_servers
from sojourn.clouds.k8s.on_machine import places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sojourn.agent.process import Launch, RunningScript

__all__ = ["mpi_launch", "mpi_variables"]

_FOLDER = "/tmp/sojourn-mpi"  # noqa: S108 -- of the script's own container
_PORT = 2222
_LONGEST = 16 << 20  # bytes of a script; a task has fewer
_PROGRAM = "program"  # the user's script, beside the one that prepares for it
_ARGUMENTS = f"-F {_FOLDER}/ssh_config"
_KEYS = f"""\
#!/bin/sh
umask 077
fail() {{ echo "sojourn: $1" >&2; exit 1; }}
id -un >/dev/null 2>&1 ||
    fail "the image has no user with id $(id -u), and SSH needs one: add it to the image"
rm -rf {_FOLDER} && mkdir -p {_FOLDER} &&
    cp {places.KEYS}/id_rsa {places.KEYS}/authorized_keys {_FOLDER}/ ||
    fail "could not copy the keys of mpi-operator from {places.KEYS} to {_FOLDER}"
"""
_LAUNCHER = f"""\
{_KEYS}
command -v ssh >/dev/null ||
    fail "the image has no ssh, by which mpirun starts processes: install openssh-client"
cat >{_FOLDER}/ssh_config <<'END'
Host *
    BatchMode yes
    ConnectTimeout 10
    ConnectionAttempts 20
    IdentitiesOnly yes
    IdentityFile {_FOLDER}/id_rsa
    LogLevel ERROR
    Port {_PORT}
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
END
while read -r host; do
    echo "$host@SLOTS@"
done <"$SOJOURN_HOSTS" >{_FOLDER}/hostfile
umask 022
exec @PROGRAM@ "$@"
"""
# Whatever is started there has the environment that a script would have, and begins in its folder.
_WORKER = f"""\
{_KEYS}
sshd=
for file in "$(command -v sshd)" /usr/sbin/sshd /usr/local/sbin/sshd /sbin/sshd; do
    [ -z "$sshd" ] && [ -x "$file" ] && sshd=$file
done
[ -n "$sshd" ] ||
    fail "the image has no sshd, by which mpirun reaches this machine: install openssh-server"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
export -p >{_FOLDER}/environment
cat >{_FOLDER}/inside <<END
. {_FOLDER}/environment
cd '$PWD' && umask 022 && exec /bin/sh -c "\\$SSH_ORIGINAL_COMMAND"
END
cat >{_FOLDER}/sshd_config <<'END'
AuthorizedKeysFile {_FOLDER}/authorized_keys
ForceCommand /bin/sh {_FOLDER}/inside
HostKey {_FOLDER}/id_rsa
KbdInteractiveAuthentication no
LogLevel ERROR
MaxStartups 1000
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
Port {_PORT}
StrictModes no
UsePAM no
END
exec "$sshd" -D -e -f {_FOLDER}/sshd_config
"""


def mpi_variables(slots: int, implementation: str) -> dict[str, str]:
    """How each MPI finds the hosts and reaches them; Open MPI had other names until 4."""
    hostfile = f"{_FOLDER}/hostfile"
    if implementation == "intel":
        return {
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _ARGUMENTS,
            "I_MPI_HYDRA_HOST_FILE": hostfile,
            "I_MPI_PERHOST": str(slots),
        }
    if implementation == "mpich":
        return {"HYDRA_HOST_FILE": hostfile, "HYDRA_LAUNCHER_EXTRA_ARGS": _ARGUMENTS}
    return {**for_open_mpi(hostfile, slots), **ssh_arguments(_ARGUMENTS)}


def mpi_launch(start: Launch, rank: int, slots: int, implementation: str) -> Launch:
    """Run the script on the first rank, ready for `mpirun`, and an SSH server on all others."""

    def launch(
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Callable[[], None],
    ) -> RunningScript:
        here = Shared(file.parent)
        if rank:
            here.write(file.name, _WORKER.encode(), 0o755)
            return start(file, workdir, environment, (), wake)
        program = file.with_name(_PROGRAM)
        here.write(_PROGRAM, here.read(file.name, _LONGEST), 0o755)
        per_host = f" slots={slots}" if implementation == "openmpi" else f":{slots}"
        text = _LAUNCHER.replace("@SLOTS@", per_host)
        text = text.replace("@PROGRAM@", shlex.quote(str(program)))
        here.write(file.name, text.encode("utf-8", "surrogateescape"), 0o755)
        hosts = Path(environment["SOJOURN_HOSTS"]).read_text().split()
        await_servers([(host, _PORT) for host in hosts[1:]], threading.Event())
        ours = mpi_variables(slots, implementation)
        return start(file, workdir, {**ours, **environment}, arguments, wake)

    return launch
