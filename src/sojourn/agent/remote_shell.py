"""Commands from one machine on another, where all machines of a task are on one computer.

python3 -m sojourn.agent.remote_shell serve FOLDER               on the one that is asked
python3 -m sojourn.agent.remote_shell run FILE ADDRESS WORDS     on the one that asks, like rsh

FILE has lines of an address and a folder. A command has the streams of whoever asks, and all else
of the machine that is asked. Who can reach a socket is a matter of its folder: only this user can.
"""

from __future__ import annotations

import array
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["run", "serve"]

_SOCKET = "shell"  # relative to a folder: the whole path may be too long for a socket
_LONGEST = 1 << 20  # bytes of a command
_STREAMS = 3
_THERE_WITHIN = 30.0  # seconds
_PAUSE = 0.05
_UNKNOWN = 255  # what ssh ends with if it cannot connect


def serve(folder: Path) -> None:
    """Run commands until it is killed; what they left is the agent's to end."""
    workdir = Path.cwd()
    os.environ.pop("PYTHONPATH", None)  # it was for this program
    os.chdir(folder)
    with suppress(FileNotFoundError):
        os.unlink(_SOCKET)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(_SOCKET)
        server.listen(128)
        while True:
            asking, _ = server.accept()
            threading.Thread(target=_answer, args=(asking, workdir), daemon=True).start()


def _answer(asking: socket.socket, workdir: Path) -> None:
    with asking:
        data, ancillary, _, _ = asking.recvmsg(_LONGEST, socket.CMSG_SPACE(_STREAMS * 4))
        streams = array.array("i")
        for _, _, content in ancillary:
            streams.frombytes(content)
        try:
            if len(streams) != _STREAMS:
                return
            source, out, errors = streams
            command = ["/bin/sh", "-c", data.decode(errors="surrogateescape")]
            process = subprocess.Popen(
                command, cwd=workdir, stdin=source, stdout=out, stderr=errors
            )
        finally:
            for number in streams:
                os.close(number)
        code = process.wait()
        with suppress(OSError):  # whoever asked may be gone
            asking.sendall(bytes([code if code >= 0 else 128 - code]))


def run(file: Path, address: str, words: list[str]) -> int:
    """Run a command on the machine with this address; returns its exit code."""
    machines = dict(line.split(" ", 1) for line in file.read_text().splitlines())
    try:
        os.chdir(machines[address])
        with _connected() as asked:
            streams = array.array("i", range(_STREAMS))
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
            text = " ".join(words).encode(errors="surrogateescape")
            asked.sendmsg([text], control)
            answer = asked.recv(1)
    except (KeyError, OSError) as error:
        sys.stderr.write(f"sojourn: could not reach the machine at {address}: {error}\n")
        return _UNKNOWN
    return answer[0] if answer else _UNKNOWN


def _connected() -> socket.socket:
    """The other machine starts its server when this one starts its script."""
    give_up = time.monotonic() + _THERE_WITHIN
    while True:
        asked = socket.socket(socket.AF_UNIX)
        try:
            asked.connect(_SOCKET)
        except OSError:
            asked.close()
            if time.monotonic() > give_up:
                raise
            time.sleep(_PAUSE)
        else:
            return asked


def main(verb: str, *words: str) -> int:
    """What the command line says."""
    if verb == "serve":
        serve(Path(words[0]))
    return run(Path(words[0]), words[1], list(words[2:]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
