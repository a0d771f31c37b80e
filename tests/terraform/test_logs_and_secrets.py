"""What is told while a command works, and what is not told to anybody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.processes import marked
from tests.support.waiting import until
from tests.terraform.hcl import STORAGE, task
from tests.terraform.project import Project

_APPLY = ("apply", "-no-color", "-auto-approve")
_OURS = "provider.terraform-provider-iterative"
_LEVEL = re.compile(r"\[(TRACE|DEBUG|INFO|WARN|ERROR)\]\s+(\S+): (.*)")


def _ours(text: str) -> list[tuple[str, str]]:
    """Level and text of each line that Terraform got from the provider."""
    matches = filter(None, map(_LEVEL.search, text.splitlines()))
    return [(m[1], m[3]) for m in matches if m[2].startswith(_OURS)]


def _logged(project: Project, level: str) -> list[tuple[str, str]]:
    """What an apply with this TF_LOG_PROVIDER told; every line of it came as JSON."""
    log = project.folder.parent / f"{level}.log"
    project.apply(TF_LOG_PROVIDER=level, TF_LOG_PATH=str(log))
    lines = _ours(log.read_text())
    assert all("@module=provider.iterative" in text for _, text in lines), lines
    return lines


def _told(lines: list[tuple[str, str]], level: str, *words: str) -> bool:
    return any(level == at and all(word in text for word in words) for at, text in lines)


class TestLog:
    def test_of_an_apply(self, project: Project) -> None:
        work = project.folder / "work"
        work.mkdir()
        (work / "large").write_bytes(os.urandom(20 << 20))
        os.mkfifo(work / "fifo")
        os.mkfifo(os.fsencode(work) + b"/not-utf-8-\xff")
        project.write(task("#!/bin/sh\ntrue", STORAGE))
        project.init()

        lines = _logged(project, "INFO")
        [own] = project.tasks()
        steps = [text for _, text in lines if text.startswith("Step ")]
        assert [step.partition(":")[0] for step in steps] == [f"Step {n}" for n in range(1, 7)]
        assert _told(lines, "INFO", "Step 4: Uploading workdir", "step=4", f"id={own}")
        assert _told(lines, "INFO", "Uploading workdir: done in ", "seconds=")
        assert _told(lines, "INFO", "Uploading workdir: 20971520 of 20971520 bytes")
        assert _told(lines, "WARN", "Not uploading fifo: ")
        assert _told(lines, "WARN", "Not uploading not-utf-8-")
        assert list(project.known()) == [own]
        assert {level for level, _ in lines} == {"INFO", "WARN"}
        project.destroy()

    def test_debug_has_more(self, project: Project) -> None:
        project.write(task("#!/bin/sh\ntrue"))
        project.init()
        lines = _logged(project, "DEBUG")
        assert _told(lines, "DEBUG", "Configured")
        assert _told(lines, "DEBUG", "Done", "verb=create", "seconds=")
        assert _told(lines, "INFO", "Step 1:")
        project.destroy()

    def test_of_a_failure(self, project: Project) -> None:
        work = project.folder / "work"
        work.mkdir()
        project.write(task("#!/bin/sh\nmkdir results; date > results/date", STORAGE))
        project.init()
        project.apply()
        until(lambda: project.stored("store/reports/*/*"))
        [damaged] = project.stored("store/ranks/0000/data/*/objects/*")
        content = damaged.read_bytes()
        damaged.write_bytes(bytes(len(content)))
        log = project.folder.parent / "log"
        project.destroy(code=1, TF_LOG_PROVIDER="ERROR", TF_LOG_PATH=str(log))
        lines = _ours(log.read_text())
        assert _told(lines, "ERROR", "Downloading results: failed after", "error=", "step=2")
        assert {level for level, _ in lines} == {"ERROR"}
        damaged.write_bytes(content)
        project.destroy()


_GIVEN = "s3cret-given-in-the-configuration"
_TAKEN = "s3cret-taken-from-the-environment"
_MATCHED = "s3cret-taken-by-a-pattern"
_OPTION = "s3cret-of-the-container"
_SECRETS = (_GIVEN, _TAKEN, _MATCHED, _OPTION)
_LOCAL = {"TAKEN_ONE": _TAKEN, "MATCHED_ONE": _MATCHED}
_ENVIRONMENT = f'environment = {{ GIVEN = "{_GIVEN}", TAKEN_ONE = "", "MATCHED_*" = "" }}'
# It says whether it has them without showing them.
_KNOWS = r"""
    #!/bin/bash
    echo "${#GIVEN} ${#TAKEN_ONE} ${#MATCHED_ONE}"
    sleep 600
"""


class TestSecrets:
    def test_are_told_to_nobody_but_the_script(self, project: Project) -> None:
        project.write(task(_KNOWS, _ENVIRONMENT))
        project.init()
        log = project.folder.parent / "log"
        project.environment |= {**_LOCAL, "TF_LOG": "TRACE", "TF_LOG_PATH": str(log)}
        planned = project.run("plan", "-no-color", "-out=plan")
        shown = project.run("show", "-no-color", "plan")
        applied = project.run("apply", "-no-color", "plan")
        for ran in (planned, shown, applied):
            assert not _secrets_in(ran.out + ran.err)
        assert not _secrets_in("\n".join(text for _, text in _ours(log.read_text())))

        # The values given stand where Terraform is told that they are sensitive, those taken
        # from here nowhere.
        state = json.loads((project.folder / "terraform.tfstate").read_text())
        [instance] = state["resources"][0]["instances"]
        attributes = instance["attributes"]
        assert attributes.pop("environment")["GIVEN"] == _GIVEN
        assert not _secrets_in(json.dumps(state))
        sensitive = [path[0]["value"] for path in instance["sensitive_attributes"]]
        assert "environment" in sensitive

        [own] = project.tasks()
        until(lambda: project.sojourn("logs", own).out.strip())
        lengths = " ".join(str(len(secret)) for secret in (_GIVEN, _TAKEN, _MATCHED))
        assert lengths in project.sojourn("logs", own).out
        arguments = _processes("cmdline")
        assert not _secrets_in(b"\n".join(arguments.values()).decode(errors="replace"))
        environments = _processes("environ")
        knowing = [
            arguments[pid]
            for pid in project.processes()
            if _GIVEN.encode() in environments.get(pid, b"")
        ]
        assert len(knowing) == 2  # the script and its `sleep`
        assert not any(b"-m\0sojourn" in text for text in knowing)
        task_file, *_ = project.stored("store/task.json")
        assert not _secrets_in(task_file.read_text())
        project.destroy()
        assert not _secrets_in("\n".join(text for _, text in _ours(log.read_text())))

    def test_of_a_container_are_not_told_either(self, project: Project) -> None:
        block = 'storage {\n container = "bucket"\n container_opts = { key = var.option }\n }'
        project.write(task("#!/bin/sh\ntrue", block) + 'variable "option" {}')
        project.init()
        log = project.folder.parent / "log"
        project.environment |= {"TF_LOG": "TRACE", "TF_LOG_PATH": str(log)}
        refused = project.run("plan", "-no-color", code=1, TF_VAR_option=_OPTION)
        assert "not supported by the local cloud" in refused.said
        assert not _secrets_in(refused.said)
        assert not _secrets_in("\n".join(text for _, text in _ours(log.read_text())))

    def test_are_in_no_process_arguments_while_an_apply_works(self, project: Project) -> None:
        project.write(task(_KNOWS, _ENVIRONMENT))
        project.init()
        apply = project.start(*_APPLY, **_LOCAL)
        seen = set()
        while apply.poll() is None:
            for pid in marked(project.environment["TEST_MARK"]):
                try:
                    seen.add(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace"))
                except OSError:
                    continue
        assert project.finish(apply).code == 0
        assert any("sojourn.terraform" in arguments for arguments in seen)
        assert not _secrets_in("\n".join(seen))
        project.destroy()


def _processes(name: str) -> dict[int, bytes]:
    """A file of each process, by its id."""
    found = {}
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        with suppress(OSError):
            found[int(path.parent.name)] = path.read_bytes()
    return found


def _secrets_in(text: str) -> list[str]:
    return [secret for secret in _SECRETS if secret in text]


_HEAVY = {
    "asyncio",
    "azure",
    "boto3",
    "botocore",
    "click",
    "cryptography",
    "google.cloud",
    "hcl2",
    "kubernetes",
    "lark",
    "rich",
    "tqdm",
    "yaml",
}


def test_the_provider_loads_no_sdk_and_nothing_of_the_command_line() -> None:
    program = "import sys, sojourn.terraform.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "sojourn.terraform.task" in loaded
    tops = {".".join(name.split(".")[:depth]) for name in loaded for depth in (1, 2)}
    assert tops & _HEAVY == set()
