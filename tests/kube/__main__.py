"""The cluster from the command line."""

from __future__ import annotations

import argparse
import sys
import time

from tests.kube import cluster, layout, prerequisites
from tests.kube.node_files import EVICTION


def main() -> int:
    """Carry out one command, and say what happens on standard error."""
    arguments = _parser().parse_args()
    start = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - start:6.1f}s  {text}\n")
        sys.stderr.flush()

    try:
        _carry_out(arguments, say)
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _carry_out(arguments: argparse.Namespace, say: prerequisites.Say) -> None:
    if arguments.command == "build":
        prerequisites.build(say)
    elif arguments.command == "up":
        cluster.up(say)
        cluster.keep()
    elif arguments.command == "down":
        cluster.down(say)
    elif arguments.command == "kill-node":
        cluster.kill_node(layout.node(arguments.name))
    elif arguments.command == "revive-node":
        changed = dict(each.split("=", 1) for each in arguments.eviction)
        cluster.revive_node(layout.node(arguments.name), {**EVICTION, **changed})
    say("Done")
    if arguments.command in ("up", "env"):
        sys.stdout.write(f"export KUBECONFIG={layout.KUBECONFIG}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.kube", description=cluster.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build Kubernetes and the images, once")
    commands.add_parser("up", help="start the cluster and print how to use it")
    commands.add_parser("down", help="stop the cluster and remove all of it")
    commands.add_parser("env", help="print how to use the cluster")
    for name, text in (("kill-node", "take a node away"), ("revive-node", "bring a node back")):
        command = commands.add_parser(name, help=text)
        command.add_argument("name", choices=[node.name for node in layout.NODES])
        if name == "revive-node":
            command.add_argument(
                "--eviction",
                action="append",
                default=[],
                metavar="SIGNAL=VALUE",
                help="evict pods at this threshold, such as memory.available=50%%",
            )
    return parser


if __name__ == "__main__":
    sys.exit(main())
