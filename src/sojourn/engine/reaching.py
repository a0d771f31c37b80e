"""The way into the machine of a rank, and why there may be none."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.activity import Doing
from sojourn.core.errors import NotFound, SojournError, Transient
from sojourn.core.status import State
from sojourn.engine.lifecycle import check_rank, require
from sojourn.engine.observe import status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Reach, RemoteProcess
    from sojourn.core.status import RankStatus

__all__ = ["exchange", "follow", "reach"]


def reach(ctx: Context, cloud: Cloud, id: TaskId, rank: int) -> Reach:
    """Into the machine that runs the script of a rank just now."""
    require(ctx, cloud, id)
    now = status(ctx, cloud, id)
    if not now.ranks:
        raise NotFound(
            f"Task {id} has no machines: {now.reason}",
            hint=f"Run `sojourn status {id}` for details.",
        )
    check_rank(rank, len(now.ranks))
    found = now.ranks[rank]
    who = f"Rank {rank} of {id}" if len(now.ranks) > 1 else f"Task {id}"
    if found.state not in (State.RUNNING, State.STORING):
        raise _without_machine(str(id), who, found)
    if found.activity and found.activity.doing is Doing.RESTORING:
        raise Transient(
            f"{who} is not running yet: {found.activity.text}",
            hint=f"Run `sojourn status {id}` to see when it is.",
        )
    return cloud.reach(id, found.machine)


def _without_machine(id: str, who: str, found: RankStatus) -> SojournError:
    if found.state is State.STOPPED:
        return NotFound(f"{who} is stopped", hint=f"Run `sojourn start {id}` to resume it.")
    if found.state.ended:
        return NotFound(
            f"{who} has ended: {found.state}",
            hint=f"Run `sojourn logs {id}` for its log, or `sojourn pull {id}` for its results.",
        )
    why = found.reason or str(found.state)
    return Transient(
        f"{who} has no machine now: {why}", hint=f"Run `sojourn status {id}` for details."
    )


_LOOK_EVERY = 0.2  # seconds, at whether somebody wants to stop


def follow(ctx: Context, process: RemoteProcess, data: bytes) -> Iterator[bytes]:
    """Give a command its input, and tell what it prints as it comes, of both streams.

    It may be silent for long: whoever wants to stop does not wait for its next word.
    """
    pieces: queue.Queue[bytes | BaseException | None] = queue.Queue()

    def read() -> None:
        try:
            for _, piece in process.output():
                pieces.put(piece)
            pieces.put(None)
        except BaseException as error:
            pieces.put(error)

    def feed() -> None:
        with suppress(OSError):  # it does not want to read all of it
            process.write(data)
        with suppress(OSError):
            process.close_input()

    workers = [
        threading.Thread(target=work, name="sojourn-follow", daemon=True) for work in (read, feed)
    ]
    for worker in workers:
        worker.start()
    try:
        while True:
            ctx.check()
            with suppress(queue.Empty):
                piece = pieces.get(timeout=_LOOK_EVERY)
                if isinstance(piece, BaseException):
                    raise piece
                if piece is None:
                    return
                yield piece
    finally:
        process.close()
        for worker in workers:
            worker.join(1)


def exchange(
    process: RemoteProcess, data: bytes, *, most: int | None = None
) -> tuple[int, bytes, bytes]:
    """Give a command its input, and wait for its end: its exit code, and what it printed.

    `most`: bytes that it may print; one that prints more is ended, and raises SojournError.

    Both at once: a command that prints before it has read all would wait for us, and we for it.
    """

    def feed() -> None:
        with suppress(OSError):  # it does not want to read all of it
            process.write(data)
        with suppress(OSError):
            process.close_input()

    feeder = threading.Thread(target=feed, name="sojourn-input", daemon=True)
    feeder.start()
    printed: dict[int, list[bytes]] = {1: [], 2: []}
    try:
        for stream, piece in process.output():
            printed[stream].append(piece)
            if most is not None and sum(map(len, printed[stream])) > most:
                raise SojournError(f"The command printed more than {most:,} bytes")
        return process.wait(), b"".join(printed[1]), b"".join(printed[2])
    finally:
        process.close()
        feeder.join(1)
