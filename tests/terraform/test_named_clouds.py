"""`cloud` is a name of the user's settings, in a main.tf as everywhere."""

from __future__ import annotations

import json

from tests.terraform.project import Project

_SETTINGS = '[clouds.lab]\nkind = "local"\nfolder = "{}"\n'
_MAIN = """\
resource "iterative_task" "one" {
  cloud  = "lab"
  script = "#!/bin/sh\\necho done"
  wait   = true
}
"""


def test_a_task_on_a_named_cloud_comes_and_goes(project: Project) -> None:
    project.environment["XDG_CONFIG_HOME"] = str(project.folder / "config")
    settings = project.folder / "config" / "sojourn" / "config.toml"
    settings.parent.mkdir(parents=True)
    text = _SETTINGS.format(project.folder / "lab")
    settings.write_text(text)
    project.write(_MAIN)
    project.init()
    project.run("apply", "-auto-approve", "-no-color")
    [made] = (project.folder / "lab" / "tasks").iterdir()
    state = json.loads(project.run("show", "-json").out)
    [resource] = state["values"]["root_module"]["resources"]
    assert resource["values"]["id"] == made.name
    assert (resource["values"]["cloud"], resource["values"]["region"]) == ("lab", "us-west")
    project.run("plan", "-detailed-exitcode", "-no-color")  # 0: nothing is to be changed
    settings.unlink()
    refused = project.run("plan", "-no-color", code=1).said
    assert "'lab', which is not known here" in refused or "unknown cloud 'lab'" in refused
    settings.write_text(text)
    project.run("destroy", "-auto-approve", "-no-color")
    assert not (project.folder / "lab").exists()
