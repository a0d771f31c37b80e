"""Bad values are refused before anything is made, each with the line that it stands in."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

import pytest

from tests.support.privileges import stopped_by_modes
from tests.terraform.diagnosed import Told, told, validated
from tests.terraform.project import Project, Ran, program


class Bad(NamedTuple):
    """A line of a task, or of a block in it, and what is said of it."""

    line: str
    message: str
    block: str = ""


_OF_TYPE = 'Inappropriate value for attribute "'

_INVALID = [
    Bad('cloud = "nowhere"', "unknown cloud 'nowhere' (available: aws, az, gcp, k8s, local)"),
    Bad('cloud = "locl"', "did you mean 'local'?"),
    Bad("cloud = null", "required, must not be null"),
    Bad('cloud = ["local"]', f'{_OF_TYPE}cloud": string required'),
    Bad('script = ""', "must not be empty"),
    Bad('script = "echo hello"', "must start with a shebang"),
    Bad('script = "#!/bin/sh\\r\\necho"', "has Windows line endings"),
    Bad('script = "#!/bin/sh\\n\\u0000"', "must not contain a NUL character"),
    Bad("script = null", "required, must not be null"),
    Bad("script = {}", f'{_OF_TYPE}script": string required'),
    Bad('region = ["us-west"]', f'{_OF_TYPE}region": string required'),
    Bad('region = "us\\u0000"', "must not contain a NUL character"),
    Bad('machine = { size = "m" }', f'{_OF_TYPE}machine": string required'),
    Bad('machine = "m\\u0000"', "must not contain a NUL character"),
    Bad("disk_size = 0", "must be -1 (automatic) or at least 1 (GB), got 0"),
    Bad("disk_size = -2", "must be -1 (automatic) or at least 1 (GB), got -2"),
    Bad("disk_size = 1.5", "must be -1 (automatic) or at least 1 (GB), got 1.5"),
    Bad("disk_size = 1e30", "must be at most 9223372036854775807, got 1"),
    Bad('disk_size = "big"', f'{_OF_TYPE}disk_size": a number is required'),
    Bad(
        "spot = -2",
        "must be -1 (on demand), 0 (automatic price) or a maximum price in USD per hour, got -2.0",
    ),
    Bad("spot = -0.5", "or a maximum price in USD per hour, got -0.5"),
    Bad("spot = 1e400", "or a maximum price in USD per hour, got inf"),
    Bad('spot = "cheap"', f'{_OF_TYPE}spot": a number is required'),
    Bad('image = ["ubuntu"]', f'{_OF_TYPE}image": string required'),
    Bad('image = "ubuntu\\u0000"', "must not contain a NUL character"),
    Bad('permission_set = ["arn"]', f'{_OF_TYPE}permission_set": string required'),
    Bad('permission_set = "\\u0000"', "must not contain a NUL character"),
    Bad("parallelism = 0", "must be a whole number from 1 to 1000, got 0"),
    Bad("parallelism = 1001", "must be at most 1000, got 1001"),
    Bad("parallelism = 1.5", "must be a whole number from 1 to 1000, got 1.5"),
    Bad('environment = "A"', f'{_OF_TYPE}environment": map of string required'),
    Bad('environment = { "1A" = "x" }', "must not start with a digit"),
    Bad('environment = { "A B" = "x" }', "name must contain only letters, digits and underscores"),
    Bad('environment = { "" = "x" }', "name must contain only letters, digits and underscores"),
    Bad('environment = { "A*" = "x" }', "its value must be empty"),
    Bad('environment = { A = "\\u0000" }', "must not contain a NUL character"),
    Bad(
        "timeout = 0",
        "must be a number of seconds (at least 1) or a duration such as '1h30m', got 0",
    ),
    Bad(
        "timeout = 0.5",
        "must be a number of seconds (at least 1) or a duration such as '1h30m', got 0.5",
    ),
    Bad(
        "timeout = 1e1000",
        "must be a number of seconds (at least 1) or a duration such as '1h30m', got inf",
    ),
    Bad(
        "timeout = 1e1000000000",
        "must be a number of seconds (at least 1) or a duration such as '1h30m', got inf",
    ),
    Bad('timeout = "1h"', f'{_OF_TYPE}timeout": a number is required'),
    Bad('tags = "a"', f'{_OF_TYPE}tags": map of string required'),
    Bad('tags = { a = ["b"] }', f'{_OF_TYPE}tags": element "a": string required'),
    Bad('mounts = "a"', f'{_OF_TYPE}mounts": map of string required'),
    Bad('mounts = { "/a" = ["b"] }', f'{_OF_TYPE}mounts": element "/a": string required'),
    Bad('options = ["a"]', f'{_OF_TYPE}options": map of string required'),
    Bad("options = { pod = {} }", f'{_OF_TYPE}options": element "pod": string required'),
    Bad('name = ["a"]', f'{_OF_TYPE}name": string required'),
    Bad('name = "a\\u0000"', "must not contain a NUL character"),
    Bad('id = "tpi-mine"', "read-only"),
    Bad('state = "running"', "read-only"),
    Bad('flavour = "vanilla"', 'An argument named "flavour" is not expected here'),
    Bad('workdir = "."', 'An argument named "workdir" is not expected here'),
    Bad('workdir = ["."]', f'{_OF_TYPE}workdir": string required', "storage"),
    Bad('workdir = "a\\u0000"', "must not contain a NUL character", "storage"),
    Bad('output = "../up"', "must be a path inside workdir, without `..`, got '../up'", "storage"),
    Bad('output = "a/../../up"', "must be a path inside workdir", "storage"),
    Bad('output = "/up"', "must be a path inside workdir, without `..`, got '/up'", "storage"),
    Bad('exclude = "*.pyc"', f'{_OF_TYPE}exclude": list of string required', "storage"),
    Bad('exclude = ["a", "{b"]', "invalid pattern '{b': unclosed {", "storage"),
    Bad('exclude = ["/"]', "'/' matches nothing", "storage"),
    Bad('exclude = ["a", null]', "must be a list of patterns", "storage"),
    Bad('container_opts = { a = "b" }', "requires storage.container", "storage"),
    Bad('default_ignore = "x"', f'{_OF_TYPE}default_ignore": a bool is required', "storage"),
    Bad('container = "bucket"', "not supported by the local cloud", "storage"),
    Bad('container = ["b"]', f'{_OF_TYPE}container": string required', "storage"),
    Bad('flavour = "vanilla"', 'An argument named "flavour" is not expected here', "storage"),
    Bad('create = "soon"', "invalid duration 'soon'", "timeouts"),
    Bad('read = "5"', "invalid duration '5'", "timeouts"),
    Bad('update = "-1m"', "invalid duration '-1m'", "timeouts"),
    Bad('delete = "0s"', "invalid duration '0s'", "timeouts"),
    Bad('fly = "5m"', 'An argument named "fly" is not expected here', "timeouts"),
]


def _resource(name: str, bad: Bad) -> str:
    lines = ['cloud = "local"', 'script = "#!/bin/sh"']
    argument = bad.line.partition(" ")[0]
    kept = [line for line in lines if bad.block or not line.startswith(f"{argument} ")]
    own = [f"{bad.block} {{", bad.line, "}"] if bad.block else [bad.line]
    return "\n".join([f'resource "iterative_task" "{name}" {{', *kept, *own, "}\n"])


def _unsaid(rows: list[Bad], found: list[Told]) -> list[tuple[Bad, list[Told]]]:
    """The rows of which it is not said, at their line, what should be."""
    missing = []
    for index, bad in enumerate(rows):
        head = f'resource "iterative_task" "r{index}"'
        here = [one for one in found if one.block == head and one.severity == "error"]
        if [one.line for one in here] != [bad.line] or bad.message not in here[0].message:
            missing.append((bad, here))
    return missing


def test_every_bad_value_is_refused_where_it_stands(project: Project) -> None:
    project.write("".join(_resource(f"r{index}", bad) for index, bad in enumerate(_INVALID)))
    project.init()
    assert _unsaid(_INVALID, validated(project, code=1)) == []


def test_whole_resources_are_refused(project: Project) -> None:
    project.write(
        """
resource "iterative_task" "no_script" {
  cloud = "local"
}
resource "iterative_task" "no_cloud" {
  script = "#!/bin/sh"
}
resource "iterative_task" "two_storages" {
  cloud  = "local"
  script = "#!/bin/sh"
  storage {}
  storage {}
}
resource "iterative_task" "many" {
  cloud       = "local"
  script      = "echo"
  parallelism = 0
  storage {
    output = "../up"
  }
}
"""
    )
    project.init()
    found = validated(project, code=1)

    def of(name: str) -> list[str]:
        return sorted(one.message for one in found if one.block.endswith(f'"{name}"'))

    assert ['The argument "script" is required' in text for text in of("no_script")] == [True]
    assert ['The argument "cloud" is required' in text for text in of("no_cloud")] == [True]
    assert ["Too many storage blocks" in text for text in of("two_storages")] == [True]
    assert [text.partition(":")[0] for text in of("many")] == [
        "parallelism",
        "script",
        "storage.output",
    ]
    project.apply(code=1)
    assert project.tasks() == []


@pytest.mark.parametrize("kind", ["resource", "data"])
def test_an_unknown_kind_is_refused(project: Project, kind: str) -> None:
    project.write(f'{kind} "iterative_runner" "example" {{}}')
    project.init()
    assert "does not support" in validated(project, code=1)[0].message


_PAGE = """
resource "iterative_task" "{cloud}" {{
  cloud       = "{cloud}"
  machine     = "{machine}"
  image       = "ubuntu"
  region      = "{region}"
  disk_size   = -1
  spot        = 0
  parallelism = 1
  timeout     = 86400

  environment = {{ GREETING = "Hello, world!" }}
  storage {{
    workdir = "."
    output  = "results"
    exclude = ["/.dvc/cache", "/results/tempfile", "*.pyc"]
  }}
  script = "#!/bin/bash"
}}
"""
_CLOUDS = {
    "aws": ("m5.2xlarge", "us-east-1"),
    "k8s": ("8-32000", "us-west"),
    "gcp": ("n2-custom-64-262144", "us-east1-a"),
    "az": ("Standard_F8s_v2", "eastus"),
}


def test_the_page_of_the_old_provider_is_valid_on_every_cloud(project: Project) -> None:
    for cloud, (machine, region) in _CLOUDS.items():
        page = _PAGE.format(cloud=cloud, machine=machine, region=region)
        project.write(page, f"{cloud}.tf")
    project.write("")
    project.init()
    assert validated(project, code=0) == []


def test_what_only_the_disk_or_the_cloud_knows_is_refused_by_the_plan(project: Project) -> None:
    (project.folder / "file").touch()
    (project.folder / "out").symlink_to("/tmp")
    (project.folder / "dangling").symlink_to("nowhere")
    rows = [
        Bad('workdir = "file"', "is not a folder", "storage"),
        Bad('workdir = "dangling"', "not found; create it first", "storage"),
        Bad('output = "out"', "is a symlink that points outside", "storage"),
        Bad('output = "out/deeper"', "is a symlink that points outside", "storage"),
    ]
    project.write("".join(_resource(f"r{index}", bad) for index, bad in enumerate(rows)))
    project.init()
    project.validate()
    assert _unsaid(rows, told(project.run("plan", "-json", code=1))) == []
    project.apply(code=1)
    assert project.tasks() == []


def test_a_workdir_that_cannot_be_read_is_refused(project: Project) -> None:
    (project.folder / "closed").mkdir(mode=0o300)
    rows = [Bad('workdir = "closed"', "is not readable", "storage")]
    project.write(_resource("r0", rows[0]))
    project.init()
    terraform = program()
    assert terraform
    done = subprocess.run(
        [*stopped_by_modes(), *terraform, "plan", "-json"],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert _unsaid(rows, told(Ran(done.returncode, done.stdout, done.stderr))) == []


_IN_NEW = """
resource "iterative_task" "example" {
  cloud  = "local"
  script = "#!/bin/sh\\ncat in && mkdir out && echo hello > out/file"
  storage {
    workdir = "new"
    output  = "out"
  }
}
"""


def test_a_missing_workdir_is_a_warning_in_the_plan_and_an_error_in_the_apply(
    project: Project,
) -> None:
    project.write(_IN_NEW)
    project.init()
    [warning] = told(project.run("plan", "-json"))
    assert (warning.severity, warning.line) == ("warning", 'workdir = "new"')
    assert f"storage.workdir: {project.folder / 'new'} does not exist yet" in warning.message
    failed = told(project.run("apply", "-json", "-auto-approve", code=1))
    errors = [one for one in failed if one.severity == "error"]
    assert [one.line for one in errors] == ['workdir = "new"']
    assert "create it first" in errors[0].message
    assert project.tasks() == []
    assert project.resources() == {}


def test_another_resource_can_make_the_workdir(project: Project) -> None:
    project.write(
        _IN_NEW.replace("storage {", "depends_on = [terraform_data.folder]\n  storage {")
        + """
resource "terraform_data" "folder" {
  provisioner "local-exec" {
    command = "mkdir new && echo content > new/in"
  }
}
"""
    )
    project.init()
    project.apply()
    project.until_state("succeeded")
    assert "content" in project.task()["logs"][0]
    project.plan()
    shutil.rmtree(project.folder / "new")
    main = (project.folder / "main.tf").read_text()
    changes = [('"out"', '"other"', 0), ("hello", "goodbye", 1)]  # in place, and a replacement
    for old, new, warnings in changes:
        (project.folder / "main.tf").write_text(main.replace(old, new))
        assert project.plan(code=2).said.count("does not exist yet") == warnings
    project.destroy()
    assert (project.folder / "new/out/file").read_text() == "hello\n"


def test_a_blank_output_downloads_nothing_and_destroy_warns_of_what_is_discarded(
    project: Project,
) -> None:
    (project.folder / "data").mkdir()
    project.write(
        """
resource "iterative_task" "example" {
  cloud = "local"
  storage { workdir = "data" }
  script = <<-END
    #!/bin/sh
    echo weights > model.pt
  END
}
"""
    )
    project.init()
    project.apply()
    project.until_state("succeeded")
    said = project.destroy().said
    assert "(1), such as model.pt: storage.output is not set" in said
    assert project.tasks() == []
    assert list((project.folder / "data").iterdir()) == []
