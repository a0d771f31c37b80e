"""Named clouds, defaults and profiles as a user of the command line has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sojourn.cli.taskoptions import machine_fields
from tests.unit.cli.shell import Shell

_USER = """\
[clouds.lab]
kind = "local"
folder = "{home}/lab"

[defaults]
environment = ["COLOUR"]
"""
_SETTINGS = """\
[defaults]
cloud = "lab"
workdir = "work"
output = "out"
spot = 5

[profiles.big]
machine = "xl"
timeout = "2h"
"""
_SCRIPT = "#!/bin/sh\nmkdir -p out\nenv | grep -E '^(COLOUR|SHAPE|TPI_MACHINE)' > out/told\n"
_HCL = """\
resource "iterative_task" "one" {
  cloud  = "lab"
  script = "#!/bin/sh\\necho done"
}
"""


@pytest.fixture
def lab(shell: Shell) -> Iterator[Shell]:
    config = shell.home / ".config" / "sojourn" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(_USER.format(home=shell.home))
    shell.file("sojourn.toml", _SETTINGS)
    shell.file("work/data", "")
    shell.file("task.sh", _SCRIPT)
    shell.environment["COLOUR"] = "red"
    yield shell
    config.unlink()


def _planned(shell: Shell, *args: str) -> dict[str, object]:
    [row] = [row for row in shell.rows_and_notes("run", "--dry-run", *args)[0] if "files" in row]
    return row


def test_a_run_has_the_defaults_of_its_project(lab: Shell) -> None:
    lab.environment["SHAPE"] = "round"
    lab.ok("run", "--profile", "big", "--env", "SHAPE", "task.sh")
    told = (lab.cwd / "work" / "out" / "told").read_text()
    assert sorted(told.split()) == ["COLOUR=red", "SHAPE=round", "TPI_MACHINE=xl"]
    assert lab.tasks() == []
    assert not (lab.home / "lab").exists()


def test_options_are_stronger_than_defaults(lab: Shell) -> None:
    assert _planned(lab, "task.sh")["cloud"] == "lab"
    plan = _planned(lab, "--cloud", "local", "--workdir", "", "task.sh")
    assert (plan["cloud"], plan["files"]) == ("local", 0)


def test_a_task_file_is_stronger_than_defaults_and_profiles(lab: Shell) -> None:
    lab.file("task.yaml", "script: '#!/bin/sh'\nspot: 1\nstorage: {workdir: ''}\nmachine: s\n")
    _, said = lab.rows_and_notes("run", "--dry-run", "--profile", "big", "task.yaml")
    assert "Ignoring machine, spot" in said
    assert _planned(lab, "task.yaml") | {"cloud": "lab", "files": 0} == _planned(lab, "task.yaml")
    lab.file("sojourn.toml", _SETTINGS.replace("spot = 5", "spot = -9"))
    assert _planned(lab, "task.yaml")["cloud"] == "lab"  # of a value that does not count, nothing


def test_a_main_tf_has_no_defaults_unless_a_profile_is_asked_for(lab: Shell) -> None:
    lab.file("main.tf", _HCL)
    _, said = lab.rows_and_notes("run", "--dry-run", "main.tf")
    assert "Ignoring" not in said
    _, said = lab.rows_and_notes("run", "--dry-run", "--profile", "big", "main.tf")
    assert "Ignoring machine:" in said
    lab.file("sojourn.toml", f"{_SETTINGS}[profiles.defaults]\nmachine = 's'\n")
    _, said = lab.rows_and_notes("run", "--dry-run", "--profile", "defaults", "main.tf")
    assert "Ignoring machine:" in said  # and no spot, which is in [defaults]


def test_a_task_on_a_named_cloud_is_found_by_all_verbs(lab: Shell) -> None:
    lab.file("main.tf", _HCL)
    lab.ok("run", "--keep", "main.tf")
    [row] = lab.rows("list")
    assert (row["cloud"], row["state"]) == ("lab", "succeeded")
    assert lab.rows("status", row["id"])[0]["cloud"] == "lab"
    assert "done" in lab.ok("logs", row["id"])
    lab.ok("delete", row["id"])
    assert lab.rows("list") == []


def test_a_default_that_is_wrong_is_told_with_its_line(lab: Shell) -> None:
    lab.file("sojourn.toml", "[defaults]\nspot = -9\n")
    result = lab("run", "task.sh")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Error: sojourn.toml:2: spot: must be -1" in result.stderr
    result = lab("run", "--spot", "-9", "task.sh")
    assert "Error: spot: must be -1" in result.stderr


def test_a_region_of_a_cloud_is_stronger_than_a_default(shell: Shell) -> None:
    team = '[clouds.team]\nkind = "k8s"\nregion = "a=b,a=c"\n[defaults]\nregion = "d=e"\n'
    shell.file("sojourn.toml", team)
    shell.file("task.sh", _SCRIPT)
    result = shell("run", "--cloud", "team", "task.sh")
    assert "region: label a must be given once, got 'a=b,a=c'" in result.stderr
    result = shell("run", "--cloud", "team", "--region", "!", "task.sh")
    assert "region: must be a node selector" in result.stderr


def test_config_shows_each_value_with_its_line(lab: Shell) -> None:
    rows = lab.rows("config")
    assert sorted(row["name"] for row in rows) == [
        *("clouds.lab.folder", "clouds.lab.kind", "defaults.cloud", "defaults.environment"),
        *("defaults.output", "defaults.spot", "defaults.workdir"),
        *("profiles.big.machine", "profiles.big.timeout"),
    ]
    by_name = {row["name"]: row for row in rows}
    assert by_name["defaults.spot"]["origin"] == "sojourn.toml:5"
    assert by_name["defaults.spot"]["value"] == 5
    config = lab.home / ".config" / "sojourn" / "config.toml"
    config.write_text("[defaults]\nspot = 1\n")
    [mine, theirs] = [row for row in lab.rows("config") if row["name"] == "defaults.spot"]
    assert mine["origin"] == "~/.config/sojourn/config.toml:2"
    assert (mine["replaced_by"], theirs["replaced_by"]) == ("sojourn.toml:5", None)
    assert "replaced by sojourn.toml:5" in lab.ok("config", "--profile", "big")


def test_config_tells_how_to_begin(shell: Shell) -> None:
    result = shell("config")
    assert (result.returncode, result.stdout) == (0, "")
    assert "No settings found. Create " in result.stderr
    assert shell("config", "--profile", "x").returncode == 2


def test_results_do_not_bring_settings(lab: Shell) -> None:
    """They would decide what the next run uploads, and as whom."""
    lab.file("evil.sh", "#!/bin/sh\necho '[defaults]' > sojourn.toml\necho kept > out\n")
    said = lab("run", "--workdir", ".", "--output", ".", "evil.sh").stderr
    assert (lab.cwd / "sojourn.toml").read_text() == _SETTINGS
    assert (lab.cwd / "out").read_text() == "kept\n"
    assert "sojourn.toml" in said
    lab.ok("delete", "--all", "--yes", "--no-pull")


def test_defaults_of_tasks_are_none_of_machines(lab: Shell) -> None:
    """Jobs of strangers run on some of them."""
    options: dict[str, object] = {"profile": "big", "workdir": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(lab.cwd)
        patch.setenv("XDG_CONFIG_HOME", str(lab.home / ".config"))
        assert machine_fields(options) == {"cloud": "lab", "spot": 5, "machine": "xl"}
