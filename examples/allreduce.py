#!/usr/bin/env python3
"""Add numbers up on all ranks of a gang, step by step, over plain sockets.

Each rank adds its number to its own total in every step, and all ranks exchange their totals.
Rank 0 listens at SOJOURN_MAIN_ADDRESS; the others connect to it. After each step, each rank saves
its state and marks the step: if a machine is lost, all of them go on from the same step.
"""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

RANK = int(os.environ["SOJOURN_RANK"])
RANKS = int(os.environ["SOJOURN_PARALLELISM"])
MAIN = (os.environ["SOJOURN_MAIN_ADDRESS"], int(os.environ["SOJOURN_MAIN_PORT"]))
STEPS = int(os.environ.get("STEPS", "10"))
PAUSE = float(os.environ.get("PAUSE", "0.5"))
STATE = Path("state.json")


def connect() -> list:
    """Rank 0 has a connection to each of the others, they have one to rank 0."""
    if RANK == 0:
        with socket.create_server(MAIN) as server:
            return [server.accept()[0].makefile("rw") for _ in range(RANKS - 1)]
    while True:
        try:
            return [socket.create_connection(MAIN).makefile("rw")]
        except ConnectionRefusedError:
            time.sleep(0.1)


def tell(peer, numbers: list) -> None:
    """Send numbers to another rank."""
    print(json.dumps(numbers), file=peer, flush=True)


def hear(peer) -> list:
    """Wait for the numbers of another rank."""
    line = peer.readline()
    if not line:
        raise SystemExit("a rank is gone")
    return json.loads(line)


def all_reduce(peers: list, mine: list) -> list:
    """The sum of each number over all ranks, on all of them."""
    if RANK == 0:
        rows = [mine, *(hear(peer) for peer in peers)]
        total = [sum(column) for column in zip(*rows, strict=True)]
        for peer in peers:
            tell(peer, total)
        return total
    tell(peers[0], mine)
    return hear(peers[0])


def main() -> None:
    """Go on from the step that was saved, if any."""
    state = json.loads(STATE.read_text()) if STATE.exists() else {"step": 0, "total": 0}
    peers = connect()
    sum_of_steps, _ = all_reduce(peers, [state["step"], 0])
    if sum_of_steps != state["step"] * RANKS:
        raise SystemExit("the ranks are not at the same step")
    print(f"rank {RANK} of {RANKS} starts at step {state['step']}")
    while state["step"] < STEPS:
        time.sleep(PAUSE)
        _, added = all_reduce(peers, [0, RANK + 1])
        state = {"step": state["step"] + 1, "total": state["total"] + added}
        STATE.write_text(json.dumps(state))
        subprocess.run([os.environ["SOJOURN_MARK"], str(state["step"])], check=True)
    print(f"rank {RANK} has {state['total']}")


main()
