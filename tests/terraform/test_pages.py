"""The configurations of the old provider's pages are valid, and plan, as they are written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sojourn.terraform.machineschema import MACHINE
from sojourn.terraform.plugin.schema import NUMBER, Schema
from sojourn.terraform.runnerschema import RUNNER
from sojourn.terraform.taskschema import TASK
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.az.account import SimAzure
from tests.simcloud.gcp.account import SimGCP
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.terraform import pages
from tests.terraform.diagnosed import Told, validated
from tests.terraform.project import HEAD, Project

# A computer that has `sojourn[terraform]` and no cloud's SDK.
_NO_SDK = """\
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("boto", "httpx", "google.auth", "azure", "websockets")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
_OTHER_CLOUDS = """
resource "iterative_task" "{cloud}" {{
  cloud   = "{cloud}"
  machine = "{machine}"
  spot    = {spot}
  script  = "#!/bin/sh"
}}
"""


def _modules(project: Project, texts: dict[str, str]) -> None:
    """Each page as a module: whole, with its own provider."""
    for name, text in texts.items():
        # Pages on one resource alone leave out what the front page has.
        head = "" if "required_providers" in text else HEAD
        project.write(head + text, f"{name}/main.tf")
    calls = [f'module "{name}" {{\n  source = "./{name}"\n}}\n' for name in texts]
    (project.folder / "main.tf").write_text("".join(calls))


def _without_sdks(project: Project, folder: Path) -> None:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_NO_SDK)
    project.environment["PYTHONPATH"] = f"{folder}:{project.environment['PYTHONPATH']}"


def _errors(found: list[Told]) -> list[str]:
    return [one.message for one in found if one.severity == "error"]


def test_every_page_is_valid_without_an_sdk(project: Project, tmp_path: Path) -> None:
    texts = {name: pages.page(name) for name in pages.NAMES}
    texts |= {f"{n}_gpu": pages.uncommented(n) for n in pages.NAMES if "instance_gpu" in texts[n]}
    texts |= {f"task_{cloud}": pages.on_cloud("task", cloud) for cloud in ("gcp", "az", "k8s")}
    _modules(project, texts)
    project.init()
    _without_sdks(project, tmp_path / "site")
    assert _errors(validated(project)) == []


@pytest.mark.parametrize(
    ("cloud", "machine", "spot", "message"),
    [
        ("aws", "p3.2large+x", 0, "machine: unknown machine type"),
        ("gcp", "custom-8-53248+nvidia-tesla-k80*1", 0, "machine: Google Cloud withdrew K80s"),
        ("gcp", "m", 0.5, "spot: must be 0 or -1 on Google Cloud"),
        ("az", "huge", 0, "machine: unknown machine type 'huge'"),
        ("az", "m+k80", 0, "machine: Standard_NC6 is not available in westus2; Azure has retired"),
        ("aws", "m+k80", 0, "machine: p2.xlarge has K80s, which AWS is retiring: use m+t4"),
        ("k8s", "8x32", 0, "machine: must be {cpu}-{memory in MB}"),
    ],
)
def test_validate_finds_what_needs_no_request(
    project: Project, tmp_path: Path, cloud: str, machine: str, spot: float, message: str
) -> None:
    project.write(_OTHER_CLOUDS.format(cloud=cloud, machine=machine, spot=spot))
    project.init()
    _without_sdks(project, tmp_path / "site")
    [told] = _errors(validated(project, code=1))
    assert told.startswith(message)


def test_a_plan_without_an_sdk_says_what_to_install(project: Project, tmp_path: Path) -> None:
    project.write(_OTHER_CLOUDS.format(cloud="aws", machine="m", spot=0))
    project.init()
    _without_sdks(project, tmp_path / "site")
    assert "AWS needs boto3, which is not installed" in project.plan(code=1).said


def _stand_ins(said: str) -> int:
    """How often the plan warns of another machine; Terraform shows some of equal warnings."""
    return len(re.findall(r"Using \S+ for m\+v100: \w+ (is retiring|has retired) V100s", said))


def _on(project: Project, cloud: str, account: dict[str, str], forge: SimForge) -> None:
    """The pages of one cloud; only the repository is another one."""
    project.environment |= {**account, "CML_TOKEN": forge.token}
    short = "az" if cloud == "azure" else cloud
    texts = {name: pages.on_cloud(name, short) for name in ("task", "front")}
    for name in pages.NAMES:
        if name.endswith(cloud):
            texts |= {name: pages.page(name), f"{name}_gpu": pages.uncommented(name)}
    if cloud == "aws":
        texts["machine_native"] = pages.page("machine_native")
    own = {n: t.replace("https://github.com/iterative/cml", forge.repo) for n, t in texts.items()}
    _modules(project, own)
    project.init()


def _planned(project: Project, count: int, warnings: int) -> None:
    said = project.plan(code=2).said
    assert f"{count} to add, 0 to change, 0 to destroy" in said
    assert _stand_ins(said) >= warnings


@pytest.mark.parametrize(
    ("cloud", "account"),
    [("aws", SimAWS), ("az", SimAzure), ("gcp", SimGCP)],
    ids=["aws", "az", "gcp"],
)
def test_sojourn_run_reads_the_pages_as_well(
    project: Project, cloud: str, account: type[SimAWS] | type[SimAzure] | type[SimGCP]
) -> None:
    """On tasks; for a machine or a runner, it names the command."""
    with account() as made:
        project.environment |= made.environment()
        for name in ("task", "front"):
            (project.folder / "main.tf").write_text(pages.on_cloud(name, cloud))
            planned = project.sojourn("run", "--dry-run", "main.tf").out
            assert "agent in the store" in planned
            assert "Dry run: nothing created." in planned


@pytest.mark.parametrize("name", [n for n in pages.NAMES if n not in ("task", "front")])
def test_sojourn_run_names_the_verb_for_a_page_on_something_else(
    project: Project, name: str
) -> None:
    (project.folder / "main.tf").write_text(pages.page(name))
    verb = "sojourn runner launch" if name.startswith("runner") else "sojourn machine create"
    said = project.sojourn("run", "--dry-run", "main.tf", code=2).said
    assert f"to create iterative_machine.machine, run `{verb}` or `terraform apply`" in said


def test_every_page_of_aws_plans(project: Project) -> None:
    with SimAWS() as account, served(SimGitHub()) as forge:
        _on(project, "aws", account.environment(), forge)
        _planned(project, 7, 1)


def test_every_page_of_azure_plans(project: Project) -> None:
    with SimAzure() as account, served(SimGitHub()) as forge:
        _on(project, "azure", account.environment(), forge)
        _planned(project, 6, 1)


def test_the_pages_on_tasks_plan_on_google_cloud(project: Project) -> None:
    with SimGCP() as account, served(SimGitHub()) as forge:
        _on(project, "gcp", account.environment(), forge)
        _planned(project, 2, 0)


_WORDS_FOR_NUMBERS = """
resource "KIND" "x" {
  cloud = "local"
  SCRIPT
ARGUMENTS
}
"""


@pytest.mark.parametrize("schema", [TASK, MACHINE, RUNNER], ids=["task", "machine", "cml_runner"])
def test_words_for_a_number_are_refused_by_terraform_itself(
    project: Project, request: pytest.FixtureRequest, schema: Schema
) -> None:
    """The provider is not asked, so it cannot say more; a number in quotes is one."""
    kind = f"iterative_{request.node.callspec.id}"
    names = [each.name for each in schema.block.attributes if each.type is NUMBER]
    script = 'script = "#!/bin/sh"' if schema is TASK else ""
    text = _WORDS_FOR_NUMBERS.replace("KIND", kind).replace("SCRIPT", script)
    for value in ("5min", "300"):
        lines = "\n".join(f'  {name} = "{value}"' for name in names)
        project.write(text.replace("ARGUMENTS", lines))
        project.init()
        said = project.finish(project.start("validate", "-no-color")).said
        wrong = [n for n in names if f'attribute "{n}": a number is required' in said]
        assert wrong == (names if value == "5min" else [])


_RETIRED = """
resource "iterative_machine" "machine" {{
  cloud         = "{cloud}"
  instance_type = "{kind}"
  instance_gpu  = "{gpu}"
}}
"""
_RETIRED_TASK = """
resource "iterative_task" "task" {{
  cloud   = "{cloud}"
  machine = "{kind}+{gpu}"
  image   = "nvidia"
  script  = "#!/bin/sh"
}}
"""


@pytest.mark.parametrize("kind", ["m", "l", "xl"])
@pytest.mark.parametrize(
    ("cloud", "account"),
    [("aws", SimAWS), ("az", SimAzure), ("gcp", SimGCP)],
    ids=["aws", "az", "gcp"],
)
def test_what_is_named_instead_of_a_k80_is_in_the_form_of_the_resource_and_plans(
    project: Project, cloud: str, account: type[SimAWS] | type[SimAzure] | type[SimGCP], kind: str
) -> None:
    """And T4s are what both forms mean."""
    with account() as made:
        project.environment |= made.environment()
        for hcl, form in (
            (_RETIRED, r'instance_type = "(\w+)" with instance_gpu = "(\w+)"'),
            (_RETIRED_TASK, r"(?:use|such as) (\w+)\+(\w+)"),
        ):
            project.write(hcl.format(cloud=cloud, kind=kind, gpu="k80"))
            project.init()
            refused = project.plan(code=1).said
            assert "K80s" in refused
            named = re.search(form, refused)
            assert named, refused
            project.write(hcl.format(cloud=cloud, kind=named[1], gpu=named[2]))
            assert "1 to add" in project.plan(code=2).said


def test_an_argument_with_a_hyphen_is_refused_with_the_name_to_write(project: Project) -> None:
    text = pages.page("runner_aws").replace("labels ", "idle-timeout = 300\n    labels ")
    (project.folder / "main.tf").write_text(text)
    project.init()
    [error] = _errors(validated(project, code=1))
    assert 'Did you mean "idle_timeout"?' in error
