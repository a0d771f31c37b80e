"""A script that exchanges a folder with a symlink while the agent's container reads the workdir."""

from __future__ import annotations

from pathlib import Path

from sojourn.clouds.k8s.on_machine import places
from tests.contract.clouds.lab import Lab
from tests.kube import images
from tests.support.waiting import until

_ROUNDS = 8  # newer snapshots; it took so many when this was found
_KEPT = "task.json"  # a file of the same name is in the Secret
# In the agent's container, the symlinks lead to the Secret; in the script's, nowhere.
_RACE = f"""\
#!/usr/bin/env python3
import ctypes, os, pathlib, time
rename = ctypes.CDLL(None).renameat2
names = "abcdefgh"
for name in names:
    os.makedirs("output/" + name)
    os.symlink("{places.TASK}/..data", "output/link-" + name)
count, due = 0, 0.0
while True:
    if time.monotonic() > due:
        due, count = time.monotonic() + 0.5, count + 1
        for name in names:
            pathlib.Path("output", name, "{_KEPT}").write_text(str(count))
        pathlib.Path("output/count").write_text(str(count))
    for _ in range(20):  # an even number of times: then each folder has its own name again
        for name in names:
            pair = ("output/" + name).encode(), ("output/link-" + name).encode()
            rename(-100, pair[0], -100, pair[1], 2)
        time.sleep(0.0005)
"""


def test_what_a_racing_script_links_to_in_the_agents_container_is_never_stored(
    lab: Lab, tmp_path: Path
) -> None:
    handle = lab.create(_RACE, image=images.PYTHON_AS_USER)
    seen: set[str] = set()
    into = tmp_path / "into"

    def newer() -> bool:
        handle.pull(into)
        for path in into.rglob(f"{_KEPT}*"):
            assert path.is_symlink() or path.read_text().isdigit(), path.read_text()[:80]
        counted = into / "output/count"
        seen.update([counted.read_text()] if counted.exists() else [])
        return len(seen) > _ROUNDS

    until(newer, 120)
    handle.delete(fetch=False)
