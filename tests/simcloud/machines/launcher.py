"""The parent of a machine on the host: makes it, writes down its console, ends with it.

It runs with `python -m` and the standard library alone. If the host process goes, however it ends,
the socket to it closes and the machine is killed. If this process is killed, the kernel kills the
machine. What becomes of folders does not belong here.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import traceback
import tty
from contextlib import suppress

from tests.simcloud.machines import kernel, network, root, wires
from tests.simcloud.machines.plan import CONSOLE, DENIED, POWER_BUTTON, Plan, tell

_ENVIRONMENT = {"container": "simulated", "TERM": "dumb"}


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    plan = Plan.loads(sys.argv[2])
    os.umask(0o022)
    os.chdir(plan.folder)
    master, console = os.openpty()
    tty.setraw(console)
    # Pressed before init listens, the power button would go unnoticed; so it is kept for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {POWER_BUTTON})
    kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        _become_machine(plan, control, console)
    watched = os.pidfd_open(pid)
    tell(control, {"pid": pid}, (watched,))
    _keep_console(control, watched, master)
    tell(control, {"ended": os.waitpid(pid, 0)[1]})


def _become_machine(plan: Plan, control: socket.socket, console: int) -> None:
    """The first process of the machine, up to its init. It does not return."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        with open(f"{plan.cgroup}/cgroup.procs", "w") as members:
            members.write("0")
        kernel.unshare(
            kernel.CLONE_NEWNS
            | kernel.CLONE_NEWUTS
            | kernel.CLONE_NEWIPC
            | kernel.CLONE_NEWNET
            | kernel.CLONE_NEWCGROUP
        )
        kernel.set_hostname(plan.hostname)
        cards = [wires.make_card()] if plan.cabled else []
        served = [address for address, _ in plan.listen]
        network.configure(
            served if cards else [plan.address, *served], plan.address if cards else ""
        )
        listening = [network.listen(address, port) for address, port in plan.listen]
        root.enter(plan, os.ttyname(console))
        for capability in DENIED.values():
            kernel.drop_capability(capability)
        sockets = [each.fileno() for each in listening]
        tell(control, {"made": True}, (*cards, *sockets))
        os.setsid()
        for standard in (0, 1, 2):
            os.dup2(console, standard)
        os.execve(plan.init[0], plan.init, _ENVIRONMENT)
    except BaseException:
        tell(control, {"failed": traceback.format_exc()})
    finally:
        os._exit(1)


def _keep_console(control: socket.socket, machine: int, master: int) -> None:
    """Write down what is printed until the machine has ended. The other side never sends."""
    os.set_blocking(master, False)
    poll = select.poll()
    for watched in (control.fileno(), machine, master):
        poll.register(watched, select.POLLIN)
    with open(CONSOLE, "ab", buffering=0) as log:
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if control.fileno() in ready:
                poll.unregister(control)
                signal.pidfd_send_signal(machine, signal.SIGKILL)
            with suppress(BlockingIOError):
                while data := os.read(master, 65536):
                    log.write(data)
            if machine in ready:
                return


if __name__ == "__main__":
    # Nobody is left to be told when the host process has gone.
    with suppress(BrokenPipeError, ConnectionResetError):
        main()
    os._exit(0)  # there is nothing to clear up, and somebody waits
