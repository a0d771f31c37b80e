"""Small files that come with a task: where its script finds them, and that they are no results."""

from __future__ import annotations

import pytest

import sojourn
from sojourn import State, clouds
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import FILES_AT_MOST
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until

_ANYWHERE = "/srv/inputs of all/HPL.dat"


def _made_for_one_task(lab: Lab) -> bool:
    return clouds.load(lab.kit.cloud).features.private_machines


def test_files_are_where_the_script_expects_them(lab: Lab) -> None:
    (lab.workdir / "seed").write_text("uploaded")
    files = {"seed": "given", "in/deep/é.txt": "é\n", "empty": ""}
    if _made_for_one_task(lab):
        files[_ANYWHERE] = "HPL\n"
    script = "; ".join(f"cat '{path}' && echo : && test ! -x '{path}'" for path in files)
    handle = lab.create(f"set -e; {script}; mkdir output; cp seed output", files=files)
    result = handle.wait()
    assert (result.status, log_of(handle)[:4]) == (State.SUCCEEDED, ["given:", "é", ":", ":"])
    assert log_of(handle)[4:] == (["HPL", ":"] if _made_for_one_task(lab) else [])
    assert handle.task().files == files
    assert [file.path for file in handle.changed()] == ["output/seed"]
    handle.delete()
    assert lab.output() == {"seed": "given"}
    assert (lab.workdir / "seed").read_text() == "uploaded"


def test_files_as_large_as_they_may_be(lab: Lab) -> None:
    path = _ANYWHERE if _made_for_one_task(lab) else "large"
    script = f"mkdir output; wc -c < '{path}' > output/size"
    assert lab.run(script, files={path: "x" * FILES_AT_MOST}).status is State.SUCCEEDED
    assert int(lab.output()["size"]) == FILES_AT_MOST


def test_what_the_script_makes_of_a_file_survives_its_machine(lab: Lab) -> None:
    files = {"output/epoch": "0"}
    script = "read epoch < output/epoch; echo $epoch; echo $((epoch + 1)) > output/epoch"
    handle = lab.create(f"{script}; test $SOJOURN_ATTEMPT = 2 || sleep 300", files=files)
    until(lambda: log_of(handle) == ["0"])
    handle.stop()
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["0", "1"]
    handle.delete()
    assert lab.output() == {"epoch": "2\n"}


def test_files_elsewhere_are_refused_where_a_task_must_not_write(lab: Lab) -> None:
    if _made_for_one_task(lab):
        pytest.skip("its machines are made for one task")
    with pytest.raises(InvalidInput, match=r"^files: /etc/a would be .* such as a$"):
        sojourn.create(lab.task("true", files={"/etc/a": "x"}))
