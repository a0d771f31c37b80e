"""A machine cannot reach back: what it writes into its store changes nothing but the results.

The scripts here use the machine's own access to the store, as anybody could who runs a script.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

import sojourn
from sojourn import api
from sojourn.core.errors import Conflict, IntegrityError, InvalidInput, SojournError
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until

# Every part of a store that is a laptop's, and what a machine would like it to say.
_FORGE = """
import json
task = json.loads(bytes(store.get("task.json")))
task["task"]["storage"].update(workdir={victim!r}, output=".", exclude=[])
forged = json.dumps(task).encode()
attempt("task.json", forged)
for path in ("environment.json", "creators/forged", "laptop/seed", "laptop/owner", "follow",
             "boot/agent-x86_64-311.zip", "workdir/snapshots/00000099"):
    attempt(path, b"forged")
os.makedirs("output", exist_ok=True)
open("output/real", "w").write("real")
open("authorized_keys", "w").write("evil")
"""

_SCORCH = """
for item in store.list(""):
    attempt(item.path, b"\\x1b[2Jjunk")
for top in ("attempts", "reports", "logs", "ranks", "machines", "ranks/0000/data"):
    for name in ("junk", "0000/junk", "0000/000001/deep/er", "9999/000001", "x/000001", "0000"):
        attempt(f"{top}/{name}", b"junk")
print("tried", flush=True)
for _ in range(3000):  # again and again: the agent writes its lease anew
    attempt("attempts/0000/000001", b"junk")
    time.sleep(0.1)
"""


# If there is no store to open, every folder that the script can write to is taken for one.
_WITHOUT_STORE = """#!/bin/bash
python3 - <<'END'
import json, os, time
class SojournError(Exception):
    pass
class Anywhere:
    def __init__(self):
        self.folders = [folder for top in ("/sojourn", "/opt", "/tmp", "/var", "/dev/shm", "/run")
                        for folder, _, _ in os.walk(top)
                        if os.access(folder, os.W_OK) and "/workdir" not in folder]
    def get(self, path):
        return b'{{"task": {{"storage": {{}}}}}}'
    def list(self, prefix):
        return [type("Item", (), {{"path": os.path.join(folder, name)}})
                for folder in self.folders for _, _, names in os.walk(folder) for name in names]
    def put(self, path, data):
        for folder in self.folders:
            target = os.path.join(folder, path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o666)
                os.write(descriptor, data)
                os.close(descriptor)
            except OSError as error:
                print(target, error.strerror)
store = Anywhere()
attempt = store.put
{code}
END
"""


def _inside(lab: Lab, code: str) -> str:
    """A script that has the machine's own store open, or all that it can reach instead."""
    inside = lab.kit.inside()
    if inside is None:
        return _WITHOUT_STORE.format(code=code)
    python, settings = inside
    return f"""#!/bin/bash
{python} - <<'END'
import json, os, time
from sojourn.core.errors import SojournError
from sojourn.storage.store import StoreAddress, open_store
with open({settings!r}) as file:
    address = json.load(file)
store = open_store(StoreAddress(address["store"], address.get("store_options") or {{}}))
def attempt(path, data):
    try:
        store.put(path, data)
    except SojournError as error:
        print(path, "refused")
{code}
END
"""


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder that nobody chose for results."""
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir(parents=True)
    (folder / "authorized_keys").write_text("mine")
    return folder


def _contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_task_that_is_forged_in_the_store_does_not_choose_where_results_go(
    lab: Lab, victim: Path
) -> None:
    result = lab.run(_inside(lab, _FORGE.format(victim=str(victim))))
    assert (result.status, result.exit_code) == (sojourn.State.SUCCEEDED, 0)
    assert lab.output() == {"real": "real"}
    assert _contents(lab.workdir) == {"output/real": "real"}
    assert _contents(victim) == {"authorized_keys": "mine"}


def test_another_shell_uses_what_this_computer_chose(lab: Lab, victim: Path) -> None:
    handle = lab.create(_inside(lab, _FORGE.format(victim=str(victim))))
    assert handle.wait().status is sojourn.State.SUCCEEDED
    sojourn.get(handle.id).delete()
    assert _contents(lab.workdir) == {"output/real": "real"}
    assert _contents(victim) == {"authorized_keys": "mine"}


def test_another_computer_writes_nowhere_but_below_the_current_folder(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = lab.create("mkdir output; echo real > output/x")
    handle.wait()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "state of another computer"))
        other.chdir(elsewhere)
        with pytest.raises(InvalidInput, match="not created on this computer") as caught:
            sojourn.get(handle.id).pull()
        assert f"sojourn pull {handle.id} --into FOLDER" in str(caught.value)
        with pytest.raises(InvalidInput, match="not created on this computer"):
            sojourn.get(handle.id).delete()
        assert list(elsewhere.iterdir()) == []
        assert sojourn.get(handle.id).pull(elsewhere) == ["output/x"]
        other.chdir(lab.workdir.parent)
        assert sojourn.get(handle.id).pull() == ["output/x"]
    assert lab.output() == {"x": "real\n"}
    handle.delete()


def test_a_creation_that_is_refused_does_not_move_the_home_of_the_task_that_is_there(
    lab: Lab, tmp_path: Path
) -> None:
    handle = lab.create("mkdir output; echo real > output/x", name="taken")
    handle.wait()
    other = tmp_path / "other"
    other.mkdir()
    storage = sojourn.Storage(workdir=str(other), output="output")
    with pytest.raises(Conflict):
        lab.create("echo another", name="taken", storage=storage)
    sojourn.get(handle.id).delete()
    assert lab.output() == {"x": "real\n"}
    assert list(other.iterdir()) == []


def test_a_store_that_is_full_of_junk_harms_nobody(lab: Lab, victim: Path) -> None:
    handle = lab.create(_inside(lab, _SCORCH))

    def is_scorched() -> bool:
        try:
            handle.status()
        except IntegrityError:
            return True
        return False

    if lab.kit.inside() is None:  # it can do no harm to the store at all
        until(lambda: "tried" in log_of(handle))
        assert not is_scorched()
    else:
        until(is_scorched)
    again = sojourn.get(handle.id)
    for verb in (
        again.status,
        again.task,
        again.reports,
        again.changed,
        again.pull,
        again.events,
        lambda: list(again.logs()),
        api.overview,
        api.gc,
    ):
        with suppress(SojournError):  # and no other exception
            verb()
    again.delete(force=True, fetch=False)
    assert _contents(victim) == {"authorized_keys": "mine"}
    assert set(os.listdir(lab.workdir)) <= {"output"}
