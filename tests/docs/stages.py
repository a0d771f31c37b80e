"""What sections of the documents take for granted, and what in them cannot be run."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.docs.blocks import ROOT, sections
from tests.docs.reader import Reader
from tests.simforge.github import SimGitHub
from tests.simforge.server import served

__all__ = [
    "BEFORE",
    "CASES",
    "CODES",
    "FIRST",
    "INSTEAD",
    "LINES_NOT_RUN",
    "NOT_RUN",
    "SLOW",
    "STAGES",
    "prepare",
]

_TRAVELS = "docs/guide.md: What travels: excludes and ignore files"
_WORKFLOW = "a file for a forge; test_reference.py parses its calls of sojourn"
# Blocks that show something and cannot be run, by section and number, with the reason.
NOT_RUN = {
    ("README.md: Try it", 2): "a log of `make demo`, which is run before each change",
    ("README.md: How recovery works", 1): "a diagram",
    ("docs/aws.md: Set-up", 2): "numbers of an account; tests/unit/cli/test_aws_setup.py",
    ("docs/azure.md: Set-up", 2): "a line of az",
    ("docs/azure.md: Set-up", 3): "numbers of a subscription; tests/unit/clouds/az has the words",
    ("docs/azure.md: Where data is stored", 1): "a container; test_az_tasks.py has one",
    ("docs/distributed.md: MPI", 1): "needs an mpirun; tests/unit/cli/test_mpi.py has one",
    ("docs/distributed.md: MPI", 2): "the same",
    ("docs/gcp.md: Permissions", 2): "lines of gcloud; tests/unit/clouds/gcp creates the role",
    ("docs/gcp.md: Set-up", 2): "a line of gcloud",
    ("docs/gcp.md: Set-up", 3): "numbers of a project; tests/unit/clouds/gcp has the words",
    ("docs/machines.md: Images made once", 1): "images; tests/simcloud/vm/test_images.py",
    ("docs/machines.md: Images made once", 2): "a recipe for GPUs and the network",
    ("docs/reference.md: States", 1): "a diagram",
    ("docs/settings.md: Named clouds", 1): "settings; tests/unit/clouds/test_named.py reads them",
    ("docs/settings.md: Defaults and profiles", 1): "tests/unit/taskfiles/test_defaults.py",
    ("docs/terraform.md: CI runners", 1): "a runner; tests/terraform/test_runner.py has some",
    ("docs/runners.md: Launch one", 2): "a GPU; tests/simcloud/vm/test_runners.py launches others",
    ("docs/runners.md: GitHub", 1): _WORKFLOW,
    ("docs/runners.md: GitLab", 1): _WORKFLOW,
    ("docs/runners.md: Bitbucket", 1): _WORKFLOW,
    ("docs/runners.md: Gitea", 1): _WORKFLOW,
    (_TRAVELS, 1): "needs an upload of 1.2 GiB; tests/unit/cli/test_dry_run.py has the words",
    (_TRAVELS, 4): "sizes of folders; tests/unit/cli/test_dry_run.py has the words",
    (_TRAVELS, 5): "an ignore file; tests/unit/engine/test_gitignore.py reads many",
    ("docs/guide.md: Commands on the machine", 2): "a configuration of OpenSSH; tests/contract"
    "/clouds/vm_kit.py leads to machines by one",
    ("docs/guide.md: Watching a task", 1): "ages of tasks; tests/unit/cli/test_verbs.py has them",
    ("docs/guide.md: Watching a task", 3): "needs a key at the right time; test_watching.py has it",
    ("docs/guide.md: Detaching and Ctrl-C", 2): "needs two keys in 3 s; test_interrupt.py has it",
}
# Lines that cannot be typed here.
LINES_NOT_RUN = {
    "az login": "asks in a browser",
    "make demo": "takes half a minute, and is run before each change",
    "make test": "this is what runs",
}
# Machines of the simulated account have the Python of this computer, whatever their image has.
_IMAGE = "ubuntu@099720109477:x86_64:*ubuntu-noble-24.04-amd64-server-*"
_FAMILY = "ubuntu@ubuntu-os-cloud/ubuntu-2404-lts-amd64"
# Parts of lines that a reader puts something else for.
INSTEAD = {
    r"--cloud aws\b": f"--cloud aws --image '{_IMAGE}'",
    r"--cloud az\b": "--cloud az --image ubuntu@Canonical:ubuntu-24_04-lts:server:latest",
    r"--cloud gcp\b": f"--cloud gcp --image {_FAMILY}",
    r"CML_TOKEN=\.\.\.": "CML_TOKEN=$FORGE_TOKEN",
    r"git clone \S*<\S.*> ": "cp -R {clone} ",
    r"# .*$": "",
}
# Exit codes other than 0, by the beginning of the line.
CODES = {"sojourn run --timeout 1 ": 124}
# Sections that take more than a few seconds, besides those on clouds whose machines boot.
SLOW = {
    "README.md: Install",
    "README.md: With Terraform",
    "docs/guide.md: A script that resumes",
    "docs/runners.md: Launch one",
    "docs/runners.md: Python",
    "docs/terraform.md: A first task",
}


def _train() -> str:
    """The script of the first example, which later ones use as well."""
    found = next(s for s in sections("README.md") if s.heading == "A first task")
    return "".join(f"{line}\n" for line in found.blocks[0].typed()[0].shown)


def prepare(reader: Reader, section: str) -> None:
    """Give a reader what the section takes for granted."""
    _files(reader)
    if section in STAGES:
        STAGES[section](reader)


def _files(reader: Reader) -> None:
    """What everybody has who comes to a section: the files of the sections before it."""
    reader.file("data.csv", "a\nb\nc\n")
    reader.file("train.sh", _train())
    reader.file("epochs.sh", (ROOT / "examples" / "epochs.sh").read_text())


def _first_task(reader: Reader) -> None:
    (reader.cwd / "train.sh").unlink()  # the section shows it


def _clone_with_files(reader: Reader) -> None:
    reader.in_a_clone()
    _files(reader)


def _resumes(reader: Reader) -> None:
    reader.in_a_clone()
    (reader.home / "project").rename(reader.home / "elsewhere")


def _checkpoints(reader: Reader) -> None:
    """A stand-in for torch, and what a training script has."""
    reader.file("torch.py", "def save(state, path):\n    open(path, 'w').write(str(state))\n")
    reader.file("results/checkpoint.pt", "")
    reader.environment["PYTHONPATH"] += os.pathsep + str(reader.cwd)


def _python_script(reader: Reader) -> None:
    reader.file("train.py", "print('trained')\n")


def _gang(reader: Reader) -> None:
    reader.file("allreduce.py", (ROOT / "examples" / "allreduce.py").read_text())
    _marks(reader)


def _marks(reader: Reader) -> None:
    """What marks steps in a gang, for blocks that are run without one."""
    mark = reader.file("mark", "#!/bin/sh\n")
    mark.chmod(0o755)
    reader.environment["SOJOURN_MARK"] = str(mark)


def _pytorch(reader: Reader) -> None:
    _checkpoints(reader)
    _python_script(reader)
    _marks(reader)
    program = reader.file("bin/torchrun", '#!/bin/sh\nshift 10\nexec python3 "$1"\n')
    program.chmod(0o755)
    reader.environment["PATH"] = f"{program.parent}:{reader.environment['PATH']}"


def _jax(reader: Reader) -> None:
    """A stand-in, which takes what the real one takes."""
    lines = (
        "class distributed:",
        "    @staticmethod",
        "    def initialize(coordinator_address, num_processes, process_id):",
        "        assert (coordinator_address, num_processes, process_id) == ('a:1', 2, 0)",
    )
    reader.file("jax.py", "".join(f"{line}\n" for line in lines))
    reader.environment["PYTHONPATH"] += os.pathsep + str(reader.cwd)
    for name, value in (
        ("COORDINATOR_ADDRESS", "a:1"),
        ("NUM_PROCESSES", "2"),
        ("PROCESS_ID", "0"),
    ):
        reader.environment[f"JAX_{name}"] = value


def _small_folder(reader: Reader) -> None:
    """What the example of a dry run has: a script, some data, and a venv that is ignored."""
    for name in ("data.csv", "epochs.sh", "train.sh"):
        (reader.cwd / name).unlink()
    reader.file(".sojournignore", ".venv/\n")
    reader.file(".venv/pyvenv.cfg", "")
    reader.file("data/rows.csv", "x" * 2048)
    reader.file("train.sh", "#!/bin/bash\n" + "#" * 49 + "\n")


def _gitignore(reader: Reader) -> None:
    for name in ("a.log", "b.txt", "data/keep", "data/large"):
        reader.file(name, "")


def _ended(reader: Reader) -> None:
    """A task that has ended, and was not deleted."""
    said = reader.type(
        "sojourn run --keep --name epochs --workdir . --output results --env LAST=3 "
        "--env PAUSE=0 epochs.sh"
    )
    assert said.code == 0, said.text


def _three_ranks(reader: Reader) -> None:
    said = reader.type("sojourn run --keep --name epochs --parallelism 3 -- true")
    assert said.code == 0, said.text


def _changed_here(reader: Reader) -> None:
    """A task that has ended and was not pulled, with a result that was edited here since."""
    reader.file("results/epoch.txt", "1\n")
    said = reader.type(
        "sojourn run --detach --name epochs --workdir . --output results --env LAST=3 "
        "--env PAUSE=0 epochs.sh && sojourn logs epochs --follow"
    )
    assert said.code == 0, said.text
    reader.file("results/epoch.txt", "changed\n")


def _at_epoch_30(reader: Reader) -> None:
    """A task that runs, and stays where it is."""
    _epoch_30(reader)
    said = reader.type(
        "sojourn run --detach --name epochs --workdir . -- sh -c 'echo up; exec sleep 300' && "
        "until sojourn logs epochs | grep up; do :; done"
    )
    assert said.code == 0, said.text


def _epoch_30(reader: Reader) -> None:
    reader.file("results/epoch.txt", "30\n")


def _task_file(reader: Reader) -> None:
    ranks = next(s for s in sections("docs/guide.md") if s.heading == "Parallel ranks")
    reader.file("task.yaml", ranks.blocks[0].text)


def _fish(reader: Reader) -> None:
    (reader.home / ".config/fish/completions").mkdir(parents=True)


def _with_provider(reader: Reader) -> None:
    assert reader.type("sojourn terraform install").code == 0


def _clone_of_a_repository(reader: Reader) -> None:
    """At a forge on this computer, whose token is at hand."""
    forge = reader.until_closed.enter_context(served(SimGitHub()))
    reader.same[forge.url] = "https://github.com"
    ci = {"GITHUB_SERVER_URL": forge.url, "GITHUB_REPOSITORY": "acme/widgets"}
    reader.environment |= {**ci, "FORGE_TOKEN": forge.token}


def _with_token(reader: Reader) -> None:
    _clone_of_a_repository(reader)
    reader.environment["CML_TOKEN"] = reader.environment["FORGE_TOKEN"]


def _settings(reader: Reader) -> None:
    lab = '[clouds.lab]\nkind = "k8s"\nnamespace = "training"\n'
    rest = '\n[defaults]\ncloud = "lab"\n\n[profiles.big]\nspot = 0\n'
    reader.file("sojourn.toml", lab + rest)


STAGES: dict[str, Callable[[Reader], None]] = {
    "README.md: A first task": _first_task,
    "README.md: Install": Reader.make_clone,
    "README.md: Run on AWS": _clone_with_files,
    "README.md: With Terraform": Reader.in_a_clone,
    "README.md: Where things are stored": _ended,
    "docs/aws.md: A first run": _clone_with_files,
    "docs/aws.md: Set-up": Reader.in_a_clone,
    "docs/azure.md: A first run": _clone_with_files,
    "docs/azure.md: Set-up": Reader.in_a_clone,
    "docs/distributed.md: JAX": _jax,
    "docs/distributed.md: PyTorch": _pytorch,
    "docs/distributed.md: When a machine is lost": _gang,
    "docs/gcp.md: A first run": _clone_with_files,
    "docs/gcp.md: Set-up": Reader.in_a_clone,
    "docs/guide.md: A script that resumes": _resumes,
    "docs/guide.md: Checkpoints, and what a snapshot guarantees": _checkpoints,
    "docs/guide.md: Cleaning up": _ended,
    "docs/guide.md: Commands on the machine": _at_epoch_30,
    "docs/guide.md: Detaching and Ctrl-C": _epoch_30,
    "docs/guide.md: JSON for scripts": _task_file,
    "docs/guide.md: Results at any time": _changed_here,
    "docs/guide.md: Scripts, commands and arguments": _python_script,
    "docs/guide.md: Watching a task": _three_ranks,
    _TRAVELS: _small_folder,
    "docs/machines.md: Terraform": _with_provider,
    "docs/reference.md: Python API": _task_file,
    "docs/reference.md: sojourn completion": _fish,
    "docs/settings.md: Defaults and profiles": _settings,
    "docs/runners.md: Launch one": _clone_of_a_repository,
    "docs/runners.md: Python": _with_token,
    "docs/terraform.md: A first task": _with_provider,
    "docs/terraform.md: Install": Reader.in_a_clone,
}


def _not_storable(reader: Reader) -> str:
    (reader.cwd / "out").symlink_to("/etc/passwd")
    os.mkfifo(reader.cwd / "pipe")
    return reader.type("sojourn run --workdir . -- true").text


def _gone_workdir(reader: Reader) -> str:
    project = reader.cwd
    moved = project.rename(reader.home / "moved")
    said = reader.type(f"cd {moved.parent} && sojourn delete epochs").text
    moved.rename(project)
    return said.replace(reader.tasks()[0], "ID")


def _another_task(reader: Reader) -> str:
    _ended(reader)
    return reader.type("sojourn run --name epochs -- true").text


def _without_workdir(reader: Reader) -> str:
    return reader.type("sojourn run python3 train.py").text


def _option_after_script(reader: Reader) -> str:
    return reader.type("sojourn run train.sh --output results").text


# When text is printed that a section shows: what was printed then.
CASES: dict[tuple[str, int], Callable[[Reader], str]] = {
    ("docs/guide.md: Scripts, commands and arguments", 2): _without_workdir,
    ("docs/guide.md: Scripts, commands and arguments", 3): _option_after_script,
    (_TRAVELS, 7): _not_storable,
    ("docs/guide.md: Results at any time", 2): _gone_workdir,
    ("docs/guide.md: Names and ids", 1): _another_task,
}
# What a reader does before a block, besides what the section takes for granted.
FIRST: dict[tuple[str, int], Callable[[Reader], None]] = {(_TRAVELS, 6): _gitignore}
# What a fragment of a program goes by, to put before it.
BEFORE = {
    ("docs/guide.md: Checkpoints, and what a snapshot guarantees", 1): "state = {}\n",
    ("docs/guide.md: Checkpoints, and what a snapshot guarantees", 2): "epoch=3\n",
}
