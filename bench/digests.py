"""What BLAKE3 saves beside SHA-256: processor time of whole transfers to the same server.

SHA-256 is measured twice, with the processor's instructions for it and without: servers before Ice
Lake and Zen have none, and most machines with V100 or A100 GPUs are such servers.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench import trees
from bench.server import S3, started
from bench.tools import our_environment

__all__ = ["main"]

_ROUNDS = 5
_WITHOUT_INSTRUCTIONS = {"OPENSSL_ia32cap": ":~0x20000000"}
_OURS = "from bench.ours import main; import sys; main(*sys.argv[1:])"
_WITH_SHA256 = f"import blake3, hashlib; blake3.blake3 = hashlib.sha256; {_OURS}"
_WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "BLAKE3": (_OURS, {}),
    "SHA-256": (_WITH_SHA256, {}),
    "SHA-256 in software": (_WITH_SHA256, _WITHOUT_INSTRUCTIONS),
}


def main(*, quick: bool = False) -> None:
    mib = 16 if quick else 1024
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-digests-") as folder, started() as server:
        tree = trees.make_large(Path(folder) / "large", mib << 20)
        for number in range(1 if quick else _ROUNDS):
            for way, (program, more) in _WAYS.items():
                bucket = f"digests-{way.lower().replace(' ', '-')}-{number}"
                server.make_bucket(bucket)
                target = Path(folder) / bucket
                target.mkdir()
                for verb, where in (("push", tree), ("restore", target)):
                    command = [sys.executable, "-c", program, verb, f"s3://{bucket}", str(where)]
                    seconds[way, verb].append(_processor_time(command, server, more))
    print(f"Processor seconds for {mib:,} MiB:\n\n| | push | restore |\n| --- | --- | --- |")
    for way in _WAYS:
        cells = [statistics.median(seconds[way, verb]) for verb in ("push", "restore")]
        base = [statistics.median(seconds["BLAKE3", verb]) for verb in ("push", "restore")]
        shown = [f"{cell:.2f} ({cell / one:.2f}x)" for cell, one in zip(cells, base, strict=True)]
        print(f"| {way} | {' | '.join(shown)} |")


def _processor_time(command: list[str], server: S3, more: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **our_environment(server), **more}
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
