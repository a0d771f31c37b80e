"""An argument is declared once, and every front end has it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from sojourn.core.argument import arguments_of
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from sojourn.taskfiles import read_tasks
from sojourn.taskfiles.decode import FIELDS
from sojourn.terraform.taskschema import TASK

_DECLARED = """\
    max_cost: float = argument(
        -1, PRICE, "Most that it may cost.", "Most that it may cost, in USD.", metavar="USD"
    )
    warm: int = argument(
"""
_YAML = "script: '#!/bin/sh'\nmax_cost: 2.5\n"
_HCL = """
resource "iterative_task" "one" {
  cloud    = "local"
  script   = "#!/bin/sh"
  max_cost = "2.5"
}
"""
_PROGRAM = """
import json
import sojourn
from sojourn.core.task import Task
from sojourn.taskfiles import read_tasks
from sojourn.taskfiles.changes import changed
from sojourn.terraform.taskschema import TASK, task_of
from sojourn.terraform.taskstate import described
from pathlib import Path

task = Task("#!/bin/sh", max_cost=2.5)
try:
    Task("#!/bin/sh", max_cost="much")
except sojourn.SojournError as error:
    refused = str(error)
[attribute] = [each for each in TASK.block.attributes if each.name == "max_cost"]
print(json.dumps({
    "yaml": read_tasks(Path("task.yaml"))[0].task.max_cost,
    "hcl": read_tasks(Path("main.tf"))[0].task.max_cost,
    "keyword": changed(Task("#!/bin/sh"), {"max_cost": 2.5}).max_cost,
    "stored": Task.from_dict(json.loads(json.dumps(task.to_dict()))).max_cost,
    "state": described(task)["max_cost"],
    "terraform": [attribute.description, attribute.default],
    "refused": refused,
}))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the whole of our source, in which a task has one argument more."""
    source = Path(sojourn.__file__).parent
    shutil.copytree(source, tmp_path / "sojourn", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "sojourn/core/task.py"
    text = file.read_text()
    assert text.count("    warm: int = argument(\n") == 1
    file.write_text(text.replace("    warm: int = argument(\n", _DECLARED))
    (tmp_path / "task.yaml").write_text(_YAML)
    (tmp_path / "main.tf").write_text(_HCL)
    return tmp_path


def _python(folder: Path, *words: str) -> str:
    environment = {"PYTHONPATH": str(folder), "HOME": str(folder), "COLUMNS": "80"}
    return subprocess.check_output([sys.executable, *words], cwd=folder, env=environment, text=True)


def test_one_that_is_made_up_is_in_every_front_end(copied: Path) -> None:
    found = json.loads(_python(copied, "-c", _PROGRAM))
    assert found == {
        "yaml": 2.5,
        "hcl": 2.5,
        "keyword": 2.5,
        "stored": 2.5,
        "state": 2.5,
        "terraform": ["Most that it may cost, in USD.", -1],
        "refused": "max_cost: must be a price of at least 0, got 'much'",
    }
    for command in ("run", "machine create", "mpi run"):
        told = _python(copied, "-m", "sojourn", *command.split(), "--help")
        assert "--max-cost USD" in told, command
        assert "Most that it may cost." in told, command
    planned = _python(copied, "-m", "sojourn", "run", "--dry-run", "--max-cost", "2", "task.yaml")
    assert "supervisor" in planned


def test_its_row_is_in_the_page_on_terraform(copied: Path) -> None:
    page = copied / "terraform.md"
    shutil.copy(Path(__file__).parents[2] / "docs/terraform.md", page)
    _python(copied, "-m", "sojourn.terraform.reference", str(page))
    assert "| `max_cost` | number | `-1` | Most that it may cost, in USD. |" in page.read_text()


def test_what_run_reads_in_a_main_tf_is_what_terraform_validates() -> None:
    ours = {name for name in FIELDS if "." not in name or name.startswith("storage.")}
    ours -= {name for name, each in arguments_of(Task).items() if not each.description}
    ours -= {"runner"}
    [storage] = TASK.block.blocks
    theirs = {each.name for each in TASK.block.attributes if not each.computed or each.optional}
    theirs |= {"storage", *(f"storage.{each.name}" for each in storage.block.attributes)}
    assert theirs - {"wait", "log_file"} == ours


def test_what_terraform_lacks_is_refused_in_a_main_tf(tmp_path: Path) -> None:
    file = tmp_path / "main.tf"
    file.write_text(_HCL.replace('max_cost = "2.5"', 'name = "x"\n  warm = "10m"'))
    with pytest.raises(InvalidInput, match=r"warm: not an argument of iterative_task; use --warm"):
        read_tasks(file)


def test_every_field_that_users_set_is_declared() -> None:
    assert set(Storage.__dataclass_fields__) == set(arguments_of(Storage))
    assert set(Task.__dataclass_fields__) == {*arguments_of(Task), "storage", "runner"}
