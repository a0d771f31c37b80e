"""`sojourn run`: a whole life from the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.privileges import stopped_by_modes
from tests.support.waiting import until
from tests.unit.cli.shell import COMMAND, Shell

_ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"


def test_arguments_arrive_as_they_were_given(shell: Shell) -> None:
    given = ["a b", "", "it's", '"q"', "$HOME `x` \\n", "é☃", "--", "-x", "*", "one\ntwo", "#"]
    shown = shell.ok("run", "--", sys.executable, "-c", _ECHO, *given)
    assert json.loads(shown) == given


def test_arguments_that_are_no_text(shell: Shell) -> None:
    script = b"printf '%s' \xff | od -An -tx1"
    run = subprocess.run(
        [*COMMAND, "run", "--", b"sh", b"-c", script],
        env=shell.environment,
        capture_output=True,
        timeout=30,
    )
    assert (run.returncode, run.stdout.strip()) == (0, b"ff")


def test_only_the_script_speaks_on_standard_output(shell: Shell) -> None:
    result = shell("run", "--", "sh", "-c", "echo out; echo err >&2; sleep 0.5")
    assert result.returncode == 0
    assert result.stdout == "out\nerr\n"
    assert "\x1b" not in result.stderr
    assert "\r" not in result.stderr
    words = result.stderr.splitlines()
    name = words[0].removeprefix("Creating ")
    waiting = ("Task queued", "Task provisioning")
    assert [line for line in words[:-1] if not line.startswith(waiting)] == [
        f"Creating {name}",
        "Task running",
        "Task succeeded",
        "Stopping machines",
        f"Deleting {name}",
    ]
    assert not [line for line in words if "lost" in line]
    assert shell.tasks() == []


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_the_scripts(shell: Shell, script: str, code: int) -> None:
    result = shell("run", "--", "sh", "-c", script)
    assert result.returncode == code
    assert (
        "Task failed: the script " in result.stderr
        or f"exit code {code}: the script" in result.stderr
    )
    assert shell.tasks() == []


def test_timeout(shell: Shell) -> None:
    result = shell("run", "--timeout", "1", "--", "sleep", "60")
    assert result.returncode == 124
    assert "Task timed-out" in result.stderr


def test_a_program_that_is_not_there(shell: Shell) -> None:
    result = shell("run", "--", "no-such-program")
    assert result.returncode == 127
    assert "no-such-program" in result.stdout


def test_a_script_that_cannot_start(shell: Shell) -> None:
    shell.file("train.sh", "#!/no/such/shell\n")
    result = shell("run", "train.sh")
    assert result.returncode == 127
    assert "/no/such/shell, from its first line, not found on this machine" in result.stderr


def test_a_script_with_its_data(shell: Shell) -> None:
    shell.file("train.sh", "#!/bin/sh\nmkdir -p results; cat data > results/copy; ls -A\n")
    shell.file("data", "hello")
    shell.file("junk.pyc", "")
    result = shell("run", "--workdir", ".", "--output", "results", "--exclude", "*.pyc", "train.sh")
    assert result.returncode == 0
    assert result.stdout.split() == ["data", "results", "train.sh"]
    assert (shell.cwd / "results" / "copy").read_text() == "hello"


@pytest.mark.parametrize("file", ["-", "/dev/stdin"])
def test_a_script_that_comes_through_a_pipe(shell: Shell, file: str) -> None:
    result = shell("run", file, input="#!/bin/sh\necho hello\n")
    assert (result.returncode, result.stdout) == (0, "hello\n")
    refused = shell("run", file, input="echo hello\n")
    assert refused.returncode == 2
    assert "script: must start with a shebang" in refused.stderr


def test_a_script_of_another_program(shell: Shell) -> None:
    command = f"{shlex.join(COMMAND)} run <(printf '#!/bin/sh\\necho hello\\n')"
    run = subprocess.run(
        ["bash", "-c", command], env=shell.environment, capture_output=True, timeout=30
    )
    assert (run.returncode, run.stdout) == (0, b"hello\n")


def test_ctrl_c_while_a_script_does_not_come(shell: Shell) -> None:
    os.mkfifo(shell.cwd / "pipe")
    terminal = shell.terminal("run", "pipe")
    writing = os.open(shell.cwd / "pipe", os.O_WRONLY)  # returns when it is read
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    os.close(writing)
    assert "Traceback" not in terminal.shown


def test_a_script_that_is_no_file(shell: Shell) -> None:
    result = shell("run", "/dev/zero")
    assert result.returncode == 2
    assert result.stderr == "Error: script: /dev/zero is neither a file nor a pipe\n"


@pytest.mark.parametrize(
    ("field", "args"),
    [("script", ["secret"]), ("storage.workdir", ["--workdir", "secret", "--", "true"])],
)
def test_what_cannot_be_read(shell: Shell, field: str, args: list[str]) -> None:
    if field == "script":
        shell.file("secret", "#!/bin/sh\n").chmod(0)
    else:
        (shell.cwd / "secret").mkdir(mode=0)
    run = subprocess.run(
        [*stopped_by_modes(), *COMMAND, "run", "--json", *args],
        cwd=shell.cwd,
        env=shell.environment,
        capture_output=True,
        timeout=30,
    )
    (shell.cwd / "secret").chmod(0o700)
    assert (run.returncode, run.stderr) == (2, b"")
    (problem,) = json.loads(run.stdout)["problems"]
    assert problem["path"] == field
    assert "is not readable; run `chmod u+r" in problem["message"]


def test_gitignore(shell: Shell) -> None:
    shell.file(".gitignore", "secret\n")
    shell.file("secret", "")
    shell.file("open", "")
    result = shell("run", "--workdir", ".", "--gitignore", "--", "ls")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["open"]


def _run_with_lost(shell: Shell, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    shell.file("train.sh", f"#!/bin/sh\nmkdir results; echo ok > results/ok\n{script}\n")
    command = [*stopped_by_modes(), *COMMAND, "run", "--output", "results", *options, "train.sh"]
    return subprocess.run(
        command, env=shell.environment, cwd=shell.cwd, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize(("options", "end", "code"), [([], "", 1), (["--keep"], "exit 3", 3)])
def test_output_that_could_not_be_stored(
    shell: Shell, options: list[str], end: str, code: int
) -> None:
    script = f"echo model > results/model; chmod 0 results/model; {end}"
    result = _run_with_lost(shell, script, *options)
    assert result.returncode == code, result.stderr
    assert "could not store results/model: could not read it" in result.stderr
    (task,) = shell.tasks()
    assert f"Keeping {shell.name(task)}: some of its results could not be stored" in result.stderr
    assert f"`sojourn status {shell.name(task)}`" in result.stderr
    assert f"`sojourn delete --force {shell.name(task)}`" in result.stderr
    assert (shell.cwd / "results/ok").exists()
    (kept,) = re.findall(r"are kept in (/.*) until the task is deleted", shell.ok("status", task))
    assert Path(kept, "results/model").exists()
    assert shell.name(task) not in shell.ok("gc")
    refused = shell("delete", task)
    assert refused.returncode == 1
    assert f"Some results of {task} could not be stored" in refused.stderr
    assert Path(kept, "results/model").exists()
    forced = shell("delete", "--force", task)
    assert "Warning: Could not download the results: Some results" in forced.stderr
    assert not os.path.lexists(kept)


def test_other_files_that_could_not_be_stored(shell: Shell) -> None:
    result = _run_with_lost(shell, "echo x > cache; chmod 0 cache")
    assert result.returncode == 0, result.stderr
    assert "could not store cache" in result.stderr
    assert shell.tasks() == []


def test_symlinks_of_the_output_that_lead_elsewhere_are_told(shell: Shell) -> None:
    result = shell(
        "run", "--output", "results", "--", "sh", "-c", "mkdir results; ln -s /x results/a"
    )
    assert result.returncode == 0
    words = "did not store results/a: the symlink points outside the folder, to /x"
    assert words in result.stderr


@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "XDG_CACHE_HOME"])
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_made(
    shell: Shell, variable: str
) -> None:
    closed = shell.cwd / "closed"
    closed.mkdir(mode=0o500)
    result = subprocess.run(
        [*stopped_by_modes(), *COMMAND, "run", "--", "true"],
        env={**shell.environment, variable: str(closed / "below")},
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 2
    assert f"cannot write to {closed}; make it writable, or set {variable} to another folder" in (
        result.stderr
    )


_YAML = """
script: |
  #!/bin/sh
  echo "$A $B $SOJOURN_PARALLELISM"
  echo x > results/$SOJOURN_RANK
environment: {A: file, B: file}
storage: {workdir: work, output: results}
"""

_HCL = """
resource "iterative_task" "one" {
  cloud = "local"
  script = <<-EOF
    #!/bin/sh
    echo "one $A"
  EOF
  environment = { A = "file" }
}
resource "iterative_task" "two" {
  cloud = "local"
  script = "#!/bin/sh\\nexit 4"
}
"""


def test_yaml_and_options_on_top_of_it(shell: Shell) -> None:
    shell.file("folder/task.yaml", _YAML)
    shell.file("folder/work/results/keep", "")
    assert shell.ok("run", "folder/task.yaml") == "file file 1\n"
    assert (shell.cwd / "folder" / "work" / "results" / "0").exists()
    shown = shell.ok("run", "--env", "B=option", "--parallelism", "2", "folder/task.yaml")
    assert sorted(shown.splitlines()) == ["[0] file option 2", "[1] file option 2"]


def test_two_tasks_of_one_name_are_refused_before_the_first_runs(shell: Shell) -> None:
    shell.file("main.tf", _HCL)
    result = shell("run", "--name", "same", "main.tf")
    assert result.returncode == 2
    assert "name: several tasks are named 'same'; use a different name for each" in result.stderr
    assert shell.tasks() == []


def test_main_tf(shell: Shell) -> None:
    shell.file("main.tf", _HCL)
    result = shell("run", "--env", "A=option", "main.tf")
    assert result.returncode == 4
    assert result.stdout == "one option\n"
    assert shell.tasks() == []


_LOGGED = """
resource "iterative_task" "one" {
  cloud    = "local"
  script   = "#!/bin/sh\\necho first\\necho second >&2\\nSCRIPT"
  log_file = "results/run.txt"
  wait     = true
}
"""


@pytest.mark.parametrize(
    ("script", "option", "code"),
    [("exit 0", "--keep", 0), ("exit 3", "--keep-failed", 3), ("sleep 60", "--timeout=2", 124)],
)
def test_the_log_file_of_main_tf_is_written_however_a_run_ends(
    shell: Shell, script: str, option: str, code: int
) -> None:
    shell.file("here/main.tf", _LOGGED.replace("SCRIPT", script))
    ran = shell("run", option, "here/main.tf")
    assert ran.returncode == code, ran.stderr
    assert "Wrote the log of rank 0 to here/results/run.txt" in ran.stderr
    log = shell.cwd / "here" / "results" / "run.txt"
    assert sorted(log.read_text().splitlines()) == ["first", "second"]


def test_each_task_of_a_file_has_its_own_log_file(shell: Shell) -> None:
    second = _LOGGED.replace('"one"', '"two"').replace("run.txt", "two.txt")
    plain = _LOGGED.replace('"one"', '"three"').replace("log_file", "# log_file")
    shell.file("main.tf", "".join((_LOGGED, plain, second)).replace("SCRIPT", ""))
    shell.ok("run", "main.tf")
    assert sorted(path.name for path in (shell.cwd / "results").iterdir()) == ["run.txt", "two.txt"]


@pytest.mark.parametrize("verb", [("run", "--detach"), ("create",)])
def test_a_detached_run_says_that_it_writes_no_log_file(
    shell: Shell, verb: tuple[str, ...]
) -> None:
    shell.file("main.tf", _LOGGED.replace("SCRIPT", ""))
    ran = shell(*verb, "main.tf")
    assert ran.returncode == 0
    assert "Not writing log_file results/run.txt: that needs a run without --detach" in ran.stderr


def test_all_tasks_of_a_file_are_checked_before_the_first_is_made(shell: Shell) -> None:
    shell.file("main.tf", _HCL.replace('\\nexit 4"', '"\n  storage { workdir = "nowhere" }'))
    result = shell("run", "main.tf")
    assert result.returncode == 2
    assert "not found; create it first" in result.stderr
    assert shell.tasks() == []


def test_tasks_that_were_started_are_told_when_another_fails(shell: Shell) -> None:
    shell.ok("run", "--detach", "--name", "taken", "--", "sleep", "60")
    shell.file("main.tf", _HCL.replace('\\nexit 4"', '"\n  name = "taken"'))
    result = shell("run", "main.tf")
    assert result.returncode == 1
    (started,) = [id for id in shell.tasks() if "taken" not in id]  # noqa: A001
    assert f"Also started, and still running: {started}" in result.stderr


def test_variables_are_imported(shell: Shell) -> None:
    shell.environment |= {"TOKEN": "a 'b'", "WANDB_KEY": "k", "WANDB_URL": "u", "OTHER": "no"}
    shown = shell.ok("run", "--env", "TOKEN", "--env", "WANDB_*", "--env", "X=1=2", "--", "env")
    lines = shown.splitlines()
    assert {"TOKEN=a 'b'", "WANDB_KEY=k", "WANDB_URL=u", "X=1=2"} < set(lines)
    assert not [line for line in lines if line.startswith("OTHER")]


def test_detach_prints_only_the_id(shell: Shell) -> None:
    result = shell("run", "--detach", "--name", "mine", "--", "true")
    assert result.returncode == 0
    (task,) = result.stdout.splitlines()
    assert [task] == shell.tasks()
    assert task.startswith("tpi-mine-")
    again = shell("run", "--detach", "--name", "mine", "--", "true")
    assert again.stdout == result.stdout, "the same name is the same task"
    other = shell("run", "--detach", "--name", "mine", "--", "false")
    assert other.returncode == 1
    assert "a different task with this name already exists" in other.stderr
    assert [task] == shell.tasks()


def test_create_is_run_detached(shell: Shell) -> None:
    task = shell.ok("create", "--", "sh", "-c", "echo hello").strip()
    until(lambda: shell.state(task) == "succeeded")
    assert shell.ok("read", task).startswith(f"hello\n{task}  succeeded\n")


def test_keep(shell: Shell) -> None:
    shell.file("results/old", "")
    result = shell(
        *("run", "--keep", "--workdir", ".", "--output", "results"),
        *("--", "sh", "-c", "echo x > results/new"),
    )
    assert result.returncode == 0
    (task,) = shell.tasks()
    assert (
        f"Keeping {shell.name(task)}. Run `sojourn delete {shell.name(task)}` to remove it."
        in result.stderr
    )
    assert (shell.cwd / "results" / "new").exists()


def test_a_task_that_has_ended_does_not_run_again(shell: Shell) -> None:
    args = ("run", "--keep", "--name", "kept", "--", "sh", "-c", "echo once")
    shell.ok(*args)
    again = shell(*args)
    assert (again.returncode, again.stdout) == (0, "once\n")
    (task,) = shell.tasks()
    assert (
        f"Warning: {shell.name(task)} has already ended and does not run again: its log"
        in again.stderr
    )
    assert f"run `sojourn delete {shell.name(task)}` first or choose another name" in again.stderr
    assert "goes on" not in again.stderr


def test_a_task_that_somebody_stopped_is_kept(shell: Shell) -> None:
    run = shell.background("run", "--", "sh", "-c", "echo started; sleep 60")
    assert run.stdout
    assert run.stdout.readline() == "started\n"
    (task,) = shell.tasks()
    shell.ok("stop", task)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130
    assert err.count("to resume it") == 1
    assert f"Keeping {shell.name(task)}, which was stopped\n" in err
    assert shell.state(task) == "stopped"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_reader_who_has_enough(shell: Shell, as_json: bool) -> None:
    options = ["--json"] if as_json else []
    script = "echo 1; while [ ! -e enough ]; do echo 2; sleep 0.05; done"
    run = shell.background("run", *options, "--name", "n", "--", "sh", "-c", script)
    assert run.stdout
    first = run.stdout.readline()
    run.stdout.close()
    assert run.wait(30) == 141
    assert run.stderr
    err = run.stderr.read()
    run.stderr.close()
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if as_json:
        assert '"step-started"' in first  # before anything was made, so nothing is left
        until(lambda: shell.tasks() == [], 5)
        return
    assert first == "1\n"
    (task,) = shell.tasks()
    assert f"Run `sojourn attach {shell.name(task)}` to reattach" in err
    assert shell.state(task) == "running"
    (workdir,) = (shell.home / "cache").glob("sojourn/machines/*/*/workdir")
    (workdir / "enough").touch()
    until(lambda: shell.state(task) == "succeeded")


def test_nobody_listens_to_standard_error(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [*COMMAND, "run", "--", "echo", "hello"],
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=writing,
        timeout=30,
    )
    os.close(writing)
    assert (run.returncode, run.stdout) == (0, b"hello\n")


def test_words_do_not_cut_the_lines_of_a_script(shell: Shell) -> None:
    script = "head -c 200000 /dev/zero | tr '\\0' y; sleep 2; echo end"
    assert shell.ok("run", "--", "sh", "-c", script) == "y" * 200_000 + "end\n"


def test_a_terminal_that_knows_ascii_only(shell: Shell) -> None:
    shell.environment["PYTHONIOENCODING"] = "ascii"
    assert shell.ok("run", "--", "printf", "é\\n") == "?\n"


def test_on_a_terminal(shell: Shell) -> None:
    shell.file("large", "x" * 1000)
    terminal = shell.terminal("run", "--workdir", ".", "--", "sh", "-c", "echo hello; exit 3")
    assert terminal.wait() == 3
    assert re.search(r"\x1b\[32mCreated\x1b\[0m [a-z-]+ in \d+\.\d s\r?\n", terminal.shown)
    assert "Uploaded" not in terminal.shown
    assert "hello" in terminal.lines()
    assert "\x1b[31mTask failed: the script ended with exit code 3" in terminal.shown


def test_progress_on_a_terminal(shell: Shell) -> None:
    shell.large_file("large", 400)
    terminal = shell.terminal("run", "--workdir", ".", "--", "ls")
    terminal.wait(60)
    assert "large" in terminal.lines()  # after a bar, if its machine took long to restore
    assert "Uploading workdir:" in terminal.shown
    if "%|" not in terminal.shown:
        pytest.skip("it was done before anything had to be drawn")
    assert "B/s" in terminal.shown


def test_machine_options_are_told_to_have_no_effect(shell: Shell) -> None:
    result = shell("run", "--machine", "xl", "--spot", "0", "--", "true")
    assert result.returncode == 0
    assert "Ignoring machine, spot: the local cloud runs on this computer" in result.stderr


def test_mounts_and_options_are_kept_with_the_task(shell: Shell) -> None:
    shell.file("pod.yaml", "spec: {}\n")
    shell.file("task.yaml", "script: '#!/bin/sh'\nmounts: {/a: b}\noptions: {c: d}\n")
    given = ["--mount", "/data=claim:a/b:ro", "--mount=/more=nfs:x:/y=z"]
    given += ["--option", "pod=@pod.yaml", "--option", "mail=me@home"]
    dry = shell("run", "--dry-run", *given, "task.yaml")
    assert dry.returncode == 0
    assert "Ignoring mounts, options: the local cloud runs on this computer" in dry.stderr
    own = shell.ok("create", "task.yaml", *given).strip()
    [store] = shell.home.rglob(f"{own}/store")
    task = json.loads((store / "task.json").read_text())["task"]
    assert task["mounts"] == {"/data": "claim:a/b:ro", "/more": "nfs:x:/y=z"}
    assert task["options"] == {"pod": "spec: {}\n", "mail": "me@home"}


def test_gangs_mpi_and_files_by_options(shell: Shell) -> None:
    shell.file("hpl.dat", "HPL\n")
    shell.file("task.yaml", "script: '#!/bin/sh'\nmpi: {implementation: openmpi}\n")
    given = ["--slots", "2", "--gang-timeout", "5m", "--file", "in/HPL.dat=@hpl.dat"]
    own = shell.ok("create", "task.yaml", *given, "--file", "seed=4=2").strip()
    [store] = shell.home.rglob(f"{own}/store")
    task = json.loads((store / "task.json").read_text())["task"]
    assert task["mpi"] == {"slots": 2, "implementation": "openmpi"}
    assert (task["gang"], task["gang_timeout"]) == (True, 300)
    assert task["files"] == {"in/HPL.dat": "HPL\n", "seed": "4=2"}


def test_the_workdir_is_found_from_elsewhere(shell: Shell, tmp_path: Path) -> None:
    shell.file("results/old", "")
    task = shell.detached("echo x > results/new", "--workdir", ".", "--output", "results")
    until(lambda: shell.state(task) == "succeeded")
    project, shell.cwd = shell.cwd, tmp_path
    assert shell.ok("delete", task) == f"Deleted {task}\n"
    assert (project / "results" / "new").exists()


def test_files_without_an_output_are_kept_unless_they_are_not_wanted(shell: Shell) -> None:
    args = ("--workdir", ".", "--", "sh", "-c", "echo weights > model.pt")
    result = shell("run", *args)
    assert result.returncode == 0
    (task,) = shell.tasks()
    (told,) = (line for line in result.stderr.splitlines() if "Keeping" in line)
    assert f"{shell.name(task)}: it left model.pt (8 B) but has no output folder" in told
    assert f"`sojourn pull {shell.name(task)} --output .`" in told
    assert shell("delete", task).returncode == 1
    shell.ok("pull", task, "--output", ".")
    shell.ok("delete", "--no-pull", task)
    (shell.cwd / "model.pt").unlink()
    shell.ok("run", "--no-output", *args)
    assert shell.tasks() == []
    assert not (shell.cwd / "model.pt").exists()


def test_an_output_and_none_exclude_each_other(shell: Shell) -> None:
    refused = shell("run", "--output", "x", "--no-output", "--", "true")
    assert refused.returncode == 2
    assert "output: cannot be combined with --no-output" in refused.stderr


def test_a_script_that_fails_leaves_its_log_at_home(shell: Shell) -> None:
    result = shell("run", "--", "sh", "-c", "echo why; exit 3")
    assert result.returncode == 3
    (path,) = re.findall(r"Log saved to ~/(.*)", result.stderr)
    assert (shell.home / path).read_text() == "why\n"
    assert shell.tasks() == []
    assert shell.ok("logs") == "why\n"  # the last task of this folder, though it is gone
    assert "Log saved" not in shell("run", "--", "true").stderr


def test_a_task_that_failed_is_kept_if_that_is_wanted(shell: Shell) -> None:
    shell.ok("run", "--keep-failed", "--", "true")
    assert shell.tasks() == []
    result = shell("run", "--keep-failed", "--", "sh", "-c", "echo why; exit 3")
    assert result.returncode == 3
    (task,) = shell.tasks()
    assert f"Keeping {shell.name(task)}." in result.stderr
    assert shell.ok("logs", task) == "why\n"
