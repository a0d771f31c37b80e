"""Runs `true` as the command line does, and prints when each phase was reached."""

from __future__ import annotations

import os
import time
from datetime import datetime

BEGAN = float(os.environ["BENCH_BEGAN"])


def main() -> None:
    import sojourn

    marks: dict[str, float] = {}

    def on_event(event: object) -> None:
        kind = type(event).__name__
        state = getattr(event, "state", "")
        now = time.time() - BEGAN
        if kind == "StepStarted" and "Creating folder" in event.step:  # type: ignore[attr-defined]
            marks["the command is loaded"] = now
        elif kind == "StepEnded" and "Starting" in event.step:  # type: ignore[attr-defined]
            marks["created"] = now
        elif kind == "LogLine":
            printed = datetime.fromisoformat(event.time.replace("Z", "+00:00"))  # type: ignore[attr-defined]
            marks.setdefault("the script runs", printed.timestamp() - BEGAN)
            marks.setdefault("its first line is shown", now)
        elif kind == "StatusChanged" and state == "succeeded":
            marks["its end is known"] = now

    sojourn.run(sojourn.Task("#!/bin/sh\necho first\n"), on_event=on_event)
    marks["everything is removed"] = time.time() - BEGAN
    for name, seconds in marks.items():
        print(name, f"{seconds:.3f}")


if __name__ == "__main__":
    main()
