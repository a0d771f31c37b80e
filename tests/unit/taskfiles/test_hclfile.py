from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from sojourn.taskfiles import other_resources, read_tasks
from sojourn.taskfiles.hclfile import read_hcl
from tests.terraform import pages

TASK_PAGE_SCRIPT = """\
#!/bin/bash

# create output directory if needed
mkdir -p results
echo "$GREETING" | tee results/$(uuidgen)
# read last result (in case of spot/preemptible instance recovery)
if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
EPOCH=${EPOCH:-1}  # start from 1 if last result not found

echo "(re)starting training loop from $EPOCH up to 1337 epochs"
for epoch in $(seq $EPOCH 1337); do
  sleep 1
  echo "$epoch" | tee results/epoch.txt
done
"""

README_SCRIPT = """\
#!/bin/bash

# create output directory if needed
mkdir -p results
# read last result (in case of spot/preemptible instance recovery)
if test -f results/epoch.txt; then EPOCH="$(cat results/epoch.txt)"; fi
EPOCH=${EPOCH:-1}  # start from 1 if last result not found

echo "(re)starting training loop from $EPOCH up to 1337 epochs"
for epoch in $(seq $EPOCH 1337); do
  sleep 1
  echo "$epoch" | tee results/epoch.txt
done
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "main.tf"
    file.write_bytes(text.encode())
    return file


def read(folder: Path, text: str) -> Task:
    [only] = read_tasks(write(folder, text))
    return only.task


def with_fields(fields: str) -> str:
    script = "" if "script" in fields else '  script = "#!/bin/sh"\n'
    return f'resource "iterative_task" "x" {{\n  cloud = "aws"\n{script}{fields}\n}}\n'


def refused(folder: Path, text: str) -> list[str]:
    file = write(folder, text)
    with pytest.raises(InvalidInput) as caught:
        read_tasks(file)
    shown = [str(problem) for problem in caught.value.problems]
    place = re.compile(re.escape(str(file)) + r"(:\d+)?: (iterative_task\.x: )?")
    assert all(place.match(line) for line in shown)
    return [place.sub("", line) for line in shown]


def test_the_example_of_the_task_page(tmp_path: Path) -> None:
    [found] = read_tasks(write(tmp_path, pages.page("task")))
    assert found.label == "example"
    assert found.task == Task(
        TASK_PAGE_SCRIPT,
        cloud="aws",
        machine="m",
        image="ubuntu",
        region="us-west",
        disk_size=-1,
        spot=0,
        parallelism=1,
        timeout=86400,
        environment={"GREETING": "Hello, world!"},
        storage=Storage(
            workdir=str(tmp_path),
            output="results",
            exclude=("/.dvc/cache", "/results/tempfile", "*.pyc"),
        ),
    )


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    assert read(tmp_path, pages.page("front")) == Task(
        README_SCRIPT,
        cloud="aws",
        spot=0,
        storage=Storage(workdir=str(tmp_path), output="results"),
    )


def test_all_tasks_of_a_file_and_nothing_else(tmp_path: Path) -> None:
    text = """
variable "unused" { default = 1 }
locals { a = upper("x") }
resource "iterative_task" "first" {
  cloud  = "aws"
  script = "#!/bin/one"
  timeouts { create = "20m" }
  wait = true
  log_file = "results/first.txt"
}
resource "aws_instance" "other" {
  ami = data.aws_ami.x.id
}
resource "iterative_cml_runner" "runner" { cloud = "aws" }
resource iterative_task second {
  cloud  = "gcp"
  script = "#!/bin/two"
}
output "logs" { value = try(join("\\n", iterative_task.first.logs), "") }
"""
    files = read_tasks(write(tmp_path, text))
    assert [file.log_file for file in files] == [tmp_path / "results" / "first.txt", None]
    found = {file.label: file.task for file in files}
    assert found == {
        "first": Task("#!/bin/one", cloud="aws"),
        "second": Task("#!/bin/two", cloud="gcp"),
    }


@pytest.mark.parametrize(
    ("expression", "script"),
    [
        (r'"#!/bin/sh\necho \"a\"\t\\n\u00e9\U0001F600"', '#!/bin/sh\necho "a"\t\\né😀'),
        ('"#! $${A} $$${B} %%{c} $$ %% $ %"', "#! ${A} $${B} %{c} $$ %% $ %"),
        ('("#!x")', "#!x"),
        ('"#!${path.module}/x"', "#!./x"),
        ("<<END\n#!/bin/sh\n  echo\nEND\n", "#!/bin/sh\n  echo\n"),
        ("<<END\n#!/bin/sh\n\n\n  END\n", "#!/bin/sh\n\n\n"),
        ("<<-END\n\t#!/bin/sh\n\n\t  echo\n  \n\tEND\n", "#!/bin/sh\n\n  echo\n  \n"),
        ("<<-END\n      #!x\n    END\n", "#!x\n"),
        ("<<-END\n    #!x\n  END2\n    END\n", None),
        ("<<-END\n    #!x\n    END2\n    END\n", "#!x\nEND2\n"),
        (
            '<<-E\n  #!x\n  $${A} $$${B} %%{c} $$ %% \\n "q" # /* // \u2028y\n  E\n',
            '#!x\n${A} $${B} %{c} $$ %% \\n "q" # /* // \u2028y\n',
        ),
        ("<<-END\n  #!x\n  $${\n  END\n", "#!x\n${\n"),
    ],
)
def test_texts_as_terraform_reads_them(tmp_path: Path, expression: str, script: str | None) -> None:
    """The expected texts are what Terraform 1.11 makes of these."""
    text = with_fields(f'  script = {expression}\n  machine = "l"')
    if script is None:
        assert "must start with its shebang" in refused(tmp_path, text)[0]
    else:
        task = read(tmp_path, text)
        assert (task.script, task.machine) == (script, "l")


@pytest.mark.parametrize("name", ["train.sh", "./train.sh", "${path.module}/train.sh"])
def test_file_is_relative_to_the_tf_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "there" / "train.sh").write_bytes(b"#!/bin/sh\necho ${A} %{x} \\n\n")
    text = with_fields(f'  script = file("{name}")\n  storage {{\n workdir = "../data"\n}}')
    write(tmp_path / "there", text)
    [found] = read_tasks(Path("../there/main.tf"))
    assert found.task.script == "#!/bin/sh\necho ${A} %{x} \\n\n"
    assert found.task.storage.workdir == str(tmp_path / "data")


def test_missing_file(tmp_path: Path) -> None:
    [line] = refused(tmp_path, with_fields('  script = file("no.sh")'))
    assert line == f"script: {tmp_path / 'no.sh'}: could not read file: No such file or directory"


@pytest.mark.parametrize(
    ("written", "value"),
    [("0.1", 0.1), ("-1", -1), ("0", 0), ("1e1", 10), ("12.50", 12.5), ('"0.25"', 0.25)],
)
def test_prices(tmp_path: Path, written: str, value: float) -> None:
    assert read(tmp_path, with_fields(f"  spot = {written}")).spot == value


@pytest.mark.parametrize(
    ("written", "value"),
    [("3600", 3600), ("1e3", 1000), ("60.0", 60), ('"90"', 90), ("null", 86400)],
)
def test_whole_numbers(tmp_path: Path, written: str, value: int) -> None:
    timeout = read(tmp_path, with_fields(f"  timeout = {written}")).timeout
    assert timeout == value
    assert type(timeout) is int


def test_maps_and_lists_convert_as_in_terraform(tmp_path: Path) -> None:
    task = read(
        tmp_path,
        with_fields(
            """
  environment = {
    A = 1, B : 1.50     # a comment
    "C_D" = true
    E = null
    "GITHUB_*" = ""
    in = "x"
    F = 1e21,
    ("G") = -0.5
    true = "yes"
  }
  tags = {}
  name = 7
  storage {
    exclude = [
      "a", # first
      1,
    ]
    container      = "bucket/path"
    container_opts = { account = "x" }
    default_ignore = "false"
  }"""
        ),
    )
    assert task.environment == {
        "A": "1",
        "B": "1.5",
        "C_D": "true",
        "E": "",
        "GITHUB_*": "",
        "in": "x",
        "F": "1000000000000000000000",
        "G": "-0.5",
        "true": "yes",
    }
    assert task.name == "7"
    assert task.storage == Storage(
        exclude=("a", "1"),
        container="bucket/path",
        container_opts={"account": "x"},
        default_ignore=False,
    )


def test_mounts_and_options(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("spec: {}\n")
    fields = """
  mounts = {
    "/data" = "claim:datasets/imagenet:ro"
  }
  options = {
    storage_class = "fast"
    pod           = file("pod.yaml")
    number        = 1
  }"""
    task = read(tmp_path, with_fields(fields))
    assert task.mounts == {"/data": "claim:datasets/imagenet:ro"}
    assert task.options == {"storage_class": "fast", "pod": "spec: {}\n", "number": "1"}


ONLY = "only Terraform can evaluate {}; use a literal value or `terraform apply`"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("machine = var.size", "machine: " + ONLY.format("`var.size`")),
        ("machine = local.sizes[0]", "machine: " + ONLY.format("`local.sizes[0]`")),
        ("machine = size", "machine: " + ONLY.format("`size`")),
        ("machine = path.cwd", "machine: " + ONLY.format("`path.cwd`")),
        ('name = "a-${var.x}"', "name: " + ONLY.format("`var.x`")),
        ('name = "%{if true}a%{endif}"', "name: only Terraform can evaluate"),
        ('name = upper("x")', "name: " + ONLY.format("the function upper()")),
        ('name = file("a", "b")', "name: " + ONLY.format("the function file()")),
        ("timeout = 60 * 60", "timeout: " + ONLY.format("`60 * 60`")),
        ("spot = !true", "spot: " + ONLY.format("`! true`")),
        ("spot = true ? 1 : 2", "spot: only Terraform can evaluate"),
        ('tags = { for k in ["a"] : k => k }', "tags: only Terraform can evaluate"),
        ('mounts = { "/a" = var.a }', "mounts: " + ONLY.format("`var.a`")),
        (
            "options = { pod = yamlencode({}) }",
            "options: " + ONLY.format("the function yamlencode()"),
        ),
        ("environment = { A = var.a }", "environment: " + ONLY.format("`var.a`")),
        ('environment = { (var.a) = "x" }', "environment: " + ONLY.format("`var.a`")),
        ("storage {\n exclude = [var.a]\n}", "storage.exclude: " + ONLY.format("`var.a`")),
        (
            "script = <<-END\n  #!x\n  echo ${HOME}\nEND\n",
            "script: " + ONLY.format("`${HOME}`") + " (for a literal ${, write $${)",
        ),
        (
            "script = <<-END\n  #!x\n  date +%{x}\nEND\n",
            "script: " + ONLY.format("`%{x}`") + " (for a literal %{, write %%{)",
        ),
        ("count = 2", "count: only supported by Terraform; remove it or use `terraform apply`"),
        ("for_each = {}", "for_each: only supported by Terraform"),
        ("depends_on = []", "depends_on: only supported by Terraform"),
        ("provider = iterative.x", "provider: only supported by Terraform"),
        ("lifecycle {\n}", "lifecycle: only supported by Terraform"),
        ('dynamic "storage" {\n}', "dynamic: only supported by Terraform"),
        ('machin = "m"', "machin: unknown field; did you mean machine?"),
        ("qqqqq = 1", "qqqqq: unknown field"),
        ("timeouts = {}", "timeouts: unknown field; did you mean timeout?"),
        (
            'storage {\n outputs = "x"\n}',
            "storage.outputs: unknown field; did you mean storage.output?",
        ),
        ("storage {\n timeouts {}\n}", "storage.timeouts: unknown field"),
        ("storage = {}", "storage: must be written as storage { ... }"),
        ("environment {\n}", "environment: must be written as environment = ..."),
        ("options {\n}", "options: must be written as options = ..."),
        ('mounts = ["/a"]', "mounts: must be a map, got a list"),
        ('options = "x"', "options: must be a map, got a string"),
        ("options = { pod = {} }", "options.pod: must be a string, got a map"),
        ("name = { a = [] }", "name: must be a string, got a map"),
        ('mount = { "/a" = "b" }', "mount: unknown field; did you mean mounts?"),
        ("storage {\n}\n  storage {\n}", "storage: specified more than once"),
        ("spot = 1\n  spot = 2", "spot: specified more than once"),
        ('timeout = "soon"', "timeout: must be a number of seconds (at least 1) or a duration"),
        ("timeout = 1.5", "timeout: must be a number of seconds (at least 1) or a duration"),
        ("timeout = true", "timeout: must be a number of seconds (at least 1) or a duration"),
        ("timeout = 0", "timeout: must be a number of seconds (at least 1)"),
        ("name = []", "name: must be a string, got a list"),
        ('environment = "x"', "environment: must be a map, got a string"),
        ('storage {\n exclude = "x"\n}', "storage.exclude: must be a list, got a string"),
        (
            'storage {\n output = "/x"\n}',
            "storage.output: must be a path inside workdir, without `..`, got '/x'",
        ),
        ('script = "echo"', "script: must start with a shebang"),
        ('log_file = "${each.key}.txt"', "log_file: "),
        ('name = "a\nb"', "name: a quoted string cannot span multiple lines"),
        (r'name = "\d"', r"name: invalid escape sequence \d; write a backslash as \\"),
        (r'name = "\U00110000"', r"name: invalid escape sequence \U00110000"),
        (r'name = "\ud800"', r"name: invalid escape sequence \ud800"),
        ('tags = { a = "$${x", b = "}" }', "tags: unclosed `${` before a quote"),
        (
            "script = <<END\n#!x\nEND  \n  machine = <<END\nm\nEND\n",
            "script: unexpected whitespace after the closing END; remove it",
        ),
    ],
)
def test_refused(tmp_path: Path, fields: str, problem: str) -> None:
    [line] = refused(tmp_path, with_fields("  " + fields))
    assert line.startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'no task found; add `resource "iterative_task" "name" { ... }`'),
        ('resource "aws_instance" "x" {}', "no task found"),
        ('data "iterative_task" "x" {}', "no task found"),
        ('resource "iterative_task" {}', "name required"),
        ('resource "iterative_task" "x" {\n  script = "#!x"\n}', "cloud: required"),
        ('resource "iterative_task" "x" {\n  cloud = "aws"\n}', "script: required"),
        (
            'resource "iterative_task" "x" {\n  cloud = null\n  script = "#!x"\n}',
            "cloud: required",
        ),
        (with_fields("") + with_fields(""), "iterative_task.x: duplicate block name"),
        ('a = "b"\nresource "x" {\n  c = = 1\n}', "invalid HCL"),
        ('resource "x" "y" {\n', "invalid HCL"),
    ],
)
def test_whole_file_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_tasks(file)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_several_problems_at_once(tmp_path: Path) -> None:
    text = 'resource "iterative_task" "x" {\n  machin = "m"\n  name = var.x\n  count = 2\n}'
    assert [line.partition(":")[0] for line in refused(tmp_path, text)] == [
        "cloud",
        "script",
        "machin",
        "name",
        "count",
    ]


def test_problems_of_all_tasks_with_their_lines(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
resource "iterative_task" "one" {
  cloud   = "local"
  timeout = 0
  script  = <<-END
    #!/bin/sh
  END
  storage {
    workdirs = "."
    exclude  = "*.pyc"
  }
}

resource "iterative_task" "two" {
  cloud       = "local"
  environment = { A = "1" }
  tags        = { B = var.b }
  spot        = []
}
""",
    )
    with pytest.raises(InvalidInput) as caught:
        read_tasks(file)
    shown = [str(problem).removeprefix(str(file)) for problem in caught.value.problems]
    assert [":".join(line.split(":")[1:4]) for line in shown] == [
        "4: iterative_task.one: timeout",
        "9: iterative_task.one: storage.workdirs",
        "10: iterative_task.one: storage.exclude",
        "14: iterative_task.two: script",
        "17: iterative_task.two: tags",
        "18: iterative_task.two: spot",
    ]


def test_arguments_and_a_timeout_with_units(tmp_path: Path) -> None:
    task = read(tmp_path, with_fields('  arguments = ["--lr", 0.1]\n  timeout = "1h30m"'))
    assert (task.arguments, task.timeout) == (("--lr", "0.1"), 5400)


def test_environment_is_not_in_messages(tmp_path: Path) -> None:
    [line] = refused(tmp_path, with_fields('  environment = { "1A" = "secret" }'))
    assert "secret" not in line


def test_large_script(tmp_path: Path) -> None:
    lines = "".join(f"    echo {i}\n" for i in range(8000))
    task = read(tmp_path, with_fields(f"  script = <<-END\n    #!/bin/sh\n{lines}    END\n"))
    assert task.script == "#!/bin/sh\n" + "".join(f"echo {i}\n" for i in range(8000))


def test_terraform_reads_files_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, with_fields('  storage {\n workdir = "."\n}'))
    [found] = read_tasks(Path("main.tf"))
    assert found.task.storage.workdir == os.getcwd()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("machine_aws", "to create iterative_machine.machine, run `sojourn machine create` or"),
        ("machine_native", "run `sojourn machine create` or `terraform apply`"),
        ("runner_kubernetes", "run `sojourn runner launch` or `terraform apply`"),
    ],
)
def test_a_file_with_a_machine_or_runner_alone_names_the_verb(name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match="no task found") as caught:
        read_hcl(pages.FOLDER / f"{name}.tf")
    assert told in caught.value.message


def test_all_that_is_no_task_is_named_with_its_verb(tmp_path: Path) -> None:
    others = """
resource "iterative_machine" "one" {}
resource "iterative_machine" "two" {
  repo = "https://github.com/acme/widgets"
}
resource "iterative_cml_runner" "three" {}
resource "iterative_mpi_operator" "four" {}
resource "aws_instance" "five" {}
data "iterative_task" "six" {}
"""
    verbs = {
        "iterative_machine.one": "sojourn machine create",
        "iterative_machine.two": "sojourn runner launch",
        "iterative_cml_runner.three": "sojourn runner launch",
        "iterative_mpi_operator.four": "sojourn mpi install",
    }
    with pytest.raises(InvalidInput, match="no task found") as caught:
        read_hcl(write(tmp_path, others))
    for address, verb in verbs.items():
        assert f"to create {address}, run `{verb}` or `terraform apply`" in caught.value.message
    file = write(tmp_path, with_fields("") + others)
    assert len(read_tasks(file)) == 1
    assert {each.address: each.verb for each in other_resources(file)} == verbs
    assert other_resources(tmp_path / "task.yaml") == []


@pytest.mark.parametrize("name", ["task", "front"])
def test_the_tasks_of_the_old_pages_are_read_as_they_are(name: str) -> None:
    [task] = read_hcl(pages.FOLDER / f"{name}.tf").values()
    assert (task.cloud, task.machine, task.spot, task.storage.output) == ("aws", "m", 0, "results")
    assert "EPOCH=${EPOCH:-1}" in task.script
