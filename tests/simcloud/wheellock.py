"""Write down the wheels of machines: `python -m tests.simcloud.wheellock REQUIREMENTS LOCK`.

Their versions are those of the lock file of this computer's own packages, and so are their hashes:
an index only tells which of the files is for which machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from sojourn.agent import wheels
from sojourn.agent.indexes import sources

NEEDED = ("blake3", "obstore")
PYTHONS = ("310", "311", "312", "313", "314", "315")
ARCHITECTURES = ("aarch64", "x86_64")
_PIN = re.compile(r"^(?P<name>\S+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))? \\$")
_OLDEST_SYSTEM = 28  # of glibc 2.x, which all images have
_PLATFORM = re.compile(r"manylinux_2_(\d+)_(\w+)")


def pins(text: str) -> dict[tuple[str, str, bool], set[str]]:
    """Hashes by name, version, and whether it is for the oldest Python alone."""
    found: dict[tuple[str, str, bool], set[str]] = {}
    hashes: set[str] = set()
    for line in text.splitlines():
        if match := _PIN.match(line):
            hashes = found.setdefault(
                (match["name"], match["version"], "< '3.11'" in (match["marker"] or "")), set()
            )
        elif "--hash=sha256:" in line:
            hashes.add(line.rpartition(":")[2].rstrip(" \\"))
    return found


def _fits(file: str, python: str, architecture: str) -> bool:
    *_, tag, abi, platforms = file.removesuffix(".whl").split("-")
    minor = tag.removeprefix("cp3")
    if not minor.isdigit():
        return False
    exact = tag == abi == f"cp{python}"
    stable = abi == "abi3" and int(minor) <= int(python[1:])
    at_home = any(
        match[2] == architecture and int(match[1]) <= _OLDEST_SYSTEM
        for platform in platforms.split(".")
        if (match := _PLATFORM.fullmatch(platform))
    )
    return (exact or stable) and at_home


def main(requirements: Path, lock: Path) -> None:
    pinned = pins(requirements.read_text())
    told = sources(os.environ)
    opener = wheels._opener(told)
    written: dict[str, dict[str, str]] = {}
    for name in NEEDED:
        page, _, kind = wheels._get(opener, f"{told.indexes[0]}/{name}/", told.indexes[0])
        files = wheels._json_files(page) if kind.endswith("json") else wheels._html_files(page)
        if not kind.endswith("json"):
            hashes = {file: link.rpartition("sha256=")[2] for file, link in files.items()}
        else:
            listed = json.loads(page)["files"]
            hashes = {each["filename"]: each["hashes"]["sha256"] for each in listed}
        for python in PYTHONS:
            for architecture in ARCHITECTURES:
                fitting = [
                    file
                    for (pin, version, oldest), allowed in pinned.items()
                    if pin == name and oldest in (python == "310", False)
                    for file, sha256 in hashes.items()
                    if file.startswith(f"{name}-{version}-")
                    and sha256 in allowed
                    and _fits(file, python, architecture)
                ]
                if not fitting:
                    message = f"{name} has no wheel for Python {python} on {architecture}\n"
                    sys.stderr.write(message)
                    continue
                best = sorted(fitting)[0]
                written.setdefault(f"{architecture}-{python}", {})[best] = hashes[best]
    whole = {key: files for key, files in sorted(written.items()) if len(files) == len(NEEDED)}
    lock.write_text(json.dumps(whole, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
