"""What a command line asks to run: a script, a command, or the tasks of a file.

Where words could mean two things, nothing is run: the error shows what to type for each.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.problems import UNIX_ENDINGS, has_windows_endings
from sojourn.core.task import Task
from sojourn.taskfiles import TaskFile, is_task_file, read_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from sojourn.cli.commandline import Typed, WithCommand

__all__ = ["is_command", "read_target", "stranded"]

_OPERATOR = re.compile(r"&&|\|\||[;|<>]|\$\(")  # of a shell
_PLAIN = re.compile(r"[\w\s@%+:,./-]+").fullmatch  # which a shell would only split
_RUNS = {".jl": "julia", ".js": "node", ".py": "python3", ".r": "Rscript", ".sh": "bash"}


def read_target(ctx: click.Context, typed: Typed, workdir: str) -> list[TaskFile]:
    """The tasks that were asked for, without what options say of them."""
    if not typed.words:
        raise InvalidInput(
            "script", "required; specify a script, a command, a task.yaml or a main.tf"
        )
    if typed.dashed:
        _refuse_line(typed)
        return [TaskFile("", Task(script=_script(typed.words)))]
    file, *arguments = typed.words
    if is_task_file(Path(file)):
        found = read_tasks(_readable(typed, Path(file), workdir))
        return [_with(each, arguments) for each in found] if arguments else found
    if is_command(file, workdir):
        return [TaskFile("", _command(ctx, typed, workdir))]
    if not typed.literal:
        _refuse_options(ctx, typed)
        _refuse_stranded(ctx, typed, typed.words[1:], workdir, file=file)
    return [_with(TaskFile("", _read_script(typed, file, workdir)), arguments)]


def _with(found: TaskFile, arguments: Sequence[str]) -> TaskFile:
    return replace(found, task=replace(found.task, arguments=tuple(arguments)))


def stranded(words: tuple[str, ...], workdir: str) -> list[str]:
    """The arguments that are files here, and would not be where the script runs."""
    found = []
    for word in words:
        path = word.partition("=")[2] if word.startswith("-") else word
        here = path and not os.path.isabs(path) and os.path.lexists(path)
        if here and not (workdir and os.path.lexists(os.path.join(workdir, path))):
            found.append(path)
    return found


def is_command(word: str, workdir: str) -> bool:
    """A file that is here is a script, unless it is a program; a folder is no reason."""
    if word == "-":
        return False
    if os.path.exists(word) and not os.path.isdir(word):
        return _is_program(word)
    if workdir and _executable(os.path.join(workdir, word)):
        return True
    import shutil  # takes its time to load

    return shutil.which(word) is not None


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_program(path: str) -> bool:
    if not _executable(path) or not os.access(path, os.R_OK):
        return False
    with open(path, "rb") as file:
        start = file.read(4096)
    return b"\0" in start and not start.startswith(b"#!")


def _command(ctx: click.Context, typed: Typed, workdir: str) -> Task:
    words = typed.words
    if not typed.literal:
        _refuse_stranded(ctx, typed, words if "/" in words[0] else words[1:], workdir)
    program = words[0]
    if "/" not in program and workdir and _executable(os.path.join(workdir, program)):
        program = f"./{program}"
    return Task(script=_script((program, *words[1:])))


def _script(command: tuple[str, ...]) -> str:
    return f"#!/bin/sh\nexec {shlex.join(command)}\n"


def _refuse_options(ctx: click.Context, typed: Typed) -> None:
    """Options after a script were Sojourn's own once: nobody should have to guess."""
    file, *after = typed.words
    arguments, options = _split(ctx, after)
    if not options:
        return
    name = options[0].partition("=")[0] if options[0].startswith("--") else options[0][:2]
    error = InvalidInput("arguments", f"{name} after {file} is ambiguous")
    error.hint = (
        f"For Sojourn's own option, run `{typed.line(*options, file, *arguments)}`.\n"
        f"For an argument of the script, run `{typed.line(file, '--', *after)}`."
    )
    raise error


def _split(ctx: click.Context, words: Sequence[str]) -> tuple[list[str], list[str]]:
    command: WithCommand = ctx.command  # type: ignore[assignment]
    return command.split(ctx, list(words))


def _refuse_line(typed: Typed) -> None:
    """A whole line of a shell in quotes is one word, and no program has such a name."""
    line, *others = typed.words
    if others or os.path.exists(line):
        return
    error = InvalidInput("command", f"no program is named {line!r}")
    words = line.split()
    dashes = ("--",) if typed.dashed else ()
    if len(words) > 1 and _PLAIN(line):
        error.hint = f"Run `{typed.line(*dashes, *words)}`, without quotes."
    elif len(words) > 1 or _OPERATOR.search(line):
        upload = "--workdir" not in typed.options and stranded(tuple(words), "")
        workdir = ("--workdir", ".") if upload else ()
        shell = typed.line(*workdir, "--", "sh", "-c", line)
        error.hint = f"Run `{shell}` to have a shell read it."
    else:
        return
    raise error


def _refuse_stranded(
    ctx: click.Context, typed: Typed, words: tuple[str, ...], workdir: str, file: str = ""
) -> None:
    left = stranded(words, workdir)
    if not left:
        return
    names = ", ".join(left)
    literal = typed.line(*([file, "--", *words] if file else ["--", *typed.words]))
    if not workdir:
        others, options = _split(ctx, typed.words)
        if "--workdir" not in options:  # else it was given, but after what it belongs before
            others, options = list(typed.words), ["--workdir", "."]
        error = InvalidInput("storage.workdir", f"not set, so {names} would not be uploaded")
        error.hint = (
            f"Run `{typed.line(*options, *others)}` to upload the current folder, "
            f"or `{literal}` to run without it."
        )
        raise error
    error = InvalidInput("storage.workdir", f"{names} not found in {workdir}")
    inside = {path: _seen_from(workdir, path) for path in left}
    if all(inside.values()):
        right = [inside.get(word) or word for word in typed.words]
        error.hint = f"Paths are relative to the workdir. Run `{typed.line(*right)}`."
    else:
        error.hint = f"Paths are relative to the workdir. Run `{literal}` to pass them unchanged."
    raise error


def _seen_from(workdir: str, path: str) -> str:
    seen = os.path.relpath(os.path.realpath(path), os.path.realpath(workdir))
    return "" if seen.startswith("..") else seen


def _read_script(typed: Typed, file: str, workdir: str) -> Task:
    from sojourn.cli.piped import read_piped

    if file == "-":
        return read_piped(0, "standard input")
    path = _readable(typed, Path(file), workdir)
    if path.is_file():
        try:
            return read_tasks(path)[0].task
        except InvalidInput as error:
            _suggest_program(typed, path, error)
            raise
    if path.is_fifo() or _is_standard_input(path):
        return read_piped(path, file)
    raise InvalidInput("script", f"{path} is neither a file nor a pipe")


def _suggest_program(typed: Typed, path: Path, error: InvalidInput) -> None:
    program = _RUNS.get(path.suffix.lower())
    if program and "shebang" in str(error):
        workdir = () if "--workdir" in typed.options else ("--workdir", ".")
        line = typed.line(*workdir, program, *typed.words)
        error.hint = f"Or run `{line}`."
        if program == "bash" and has_windows_endings(path.read_bytes().decode(errors="replace")):
            fix = UNIX_ENDINGS.replace("FILE", shlex.quote(str(path)))
            error.hint = f"Or run `{fix}`, as bash needs it, and then `{line}`."


def _readable(typed: Typed, path: Path, workdir: str) -> Path:
    if path.is_dir():
        raise InvalidInput("script", f"{path} is a folder, not a script, task.yaml or main.tf")
    if not path.exists():
        raise _not_found(typed, path, workdir)
    if not os.access(path, os.R_OK):
        raise InvalidInput(
            "script", f"{path} is not readable; run `chmod u+r {shlex.quote(str(path))}`"
        )
    return path


def _not_found(typed: Typed, path: Path, workdir: str) -> InvalidInput:
    import difflib

    if _OPERATOR.search(typed.words[0]) or is_command(typed.words[0].split(" ")[0], workdir):
        _refuse_line(typed)
    error = InvalidInput("script", f"{path} not found")
    there = Path(workdir, path)
    if workdir and there.is_file():
        error.hint = f"Run `{typed.line(str(there), *typed.words[1:])}`."
        return error
    names = [item.name for item in Path().iterdir() if item.is_file()]
    near = difflib.get_close_matches(str(path), names, n=1)
    if near:
        error.hint = f"Did you mean {near[0]}?"
    elif not is_task_file(path):
        _refuse_line(typed)
        error.hint = f"Run `{typed.line('--', *typed.words)}` if it is a command on the machine."
    return error


def _is_standard_input(path: Path) -> bool:
    """As /dev/stdin is, whatever lies behind it."""
    return os.path.samestat(path.stat(), os.fstat(0))
