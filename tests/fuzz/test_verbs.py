"""Whatever is in the store of a task, no verb breaks: not for it, and not for other tasks.

A machine can write anything into the store of its task. Each round mangles the store of one task
as a seed says (`evil`), and runs every verb of the command line in this process. Nothing but an
error of ours may come out, memory stays bounded, the other tasks can be used as before, and
`delete --force` removes the mangled one.

`make fuzz` runs it for ten minutes, with new seeds each time. A failure tells its seed:
`SOJOURN_FUZZ_SEED=7 pytest tests/fuzz` runs that round alone.
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

import pytest

import sojourn
from sojourn.cli.app import run
from sojourn.engine import ledger
from tests.fuzz.evil import mangle
from tests.support.waiting import patience, until

_SEED = os.environ.get("SOJOURN_FUZZ_SEED")
_WORKERS = int(os.environ.get("SOJOURN_FUZZ_WORKERS", "1"))
_SECONDS = float(os.environ.get("SOJOURN_FUZZ_SECONDS", "0"))
_ROUNDS = 8  # of a short run
_RUNS_ON = 6  # every so many rounds, the mangled task is one that runs
_MEMORY = 600 << 20  # bytes more than before, at most: a log segment and a manifest at once
_VERB_WITHIN = 120  # seconds
_SCRIPT = """#!/bin/sh
mkdir -p out; echo result > out/a; head -c 100000 /dev/zero > out/b; ln -s a out/c
echo one; echo two; printf three
"""


_WITH_JSON = ("status", "logs", "pull", "delete", "gc")
_TYPED = {  # by verb, where it is not the id alone
    "exec": ("ID", "--", "true"),
    "run": ("--name", "victim", "--no-output", "--", "true"),
}


class Stuck(BaseException):
    """A verb takes for ever."""


@dataclass
class Lab:
    """Two tasks that nobody touches, and the store of one that ended."""

    root: Path
    tasks: Path
    ended: str
    running: str
    victim: str
    kept: Path
    said: str = ""  # what the last command wrote to standard error

    def run(self, *words: str) -> tuple[int, str]:
        """A command as in a shell: its exit code, and what it wrote to standard output."""
        out, errors = _stream("strict"), _stream("backslashreplace")  # as Python has them
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["sojourn", *words])
            patch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", errors)
            signal.signal(signal.SIGALRM, _stuck)
            signal.alarm(int(patience(_VERB_WITHIN)))
            try:
                code = run()  # not `main`, which listens to signals until its process ends
            finally:
                signal.alarm(0)
                sys.stdin.close()
        self.said = _text(errors)
        assert "\x1b]0;evil" not in self.said
        assert words[0] == "logs" or "\x1b]0;evil" not in _text(out)
        return code, _text(out)

    def good(self, *words: str) -> str:
        code, text = self.run(*words)
        assert code == 0, (words, text, self.said)
        return text

    def check_others(self) -> None:
        """They are listed as they are, and every verb that changes nothing works for them."""
        rows = [json.loads(line) for line in self.good("list", "--json").splitlines()]
        states = {row["id"]: row["state"] for row in rows if row["type"] == "task"}
        assert states[self.ended] == "succeeded"
        assert states[self.running] == "running"
        for verb in (("gc",), ("machine", "list"), ("runner", "list")):
            self.good(*verb, "--json")
        assert '"succeeded"' in self.good("status", self.ended, "--json")
        assert self.good("logs", self.ended) == "one\ntwo\nthree\n"
        assert self.good("logs", self.ended, "--tail", "1") == "three\n"
        assert "up" in self.good("logs", self.running)
        into = self.root / "results"
        self.good("pull", self.ended, "--output", "out", "--into", str(into))
        assert (into / "out/a").read_text() == "result\n"
        shutil.rmtree(into)


def _stream(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(errors="replace")


def _stuck(number: int, frame: object) -> None:
    raise Stuck


def _task(script: str, name: str, workdir: Path) -> sojourn.Handle:
    storage = sojourn.Storage(workdir=str(workdir), output="out")
    return sojourn.create(sojourn.Task(script, name=name, storage=storage))


@pytest.fixture
def lab(own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (workdir / "pushed").write_text("pushed")
    monkeypatch.chdir(workdir)
    ended, victim = (_task(_SCRIPT, name, workdir) for name in ("ended", "victim"))
    running = _task("#!/bin/sh\necho up\nsleep 100000\n", "running", workdir)
    for handle in (ended, victim):
        until(lambda handle=handle: handle.status().state.ended)  # type: ignore[misc]
        until(lambda handle=handle: not handle.machines())  # type: ignore[misc]
    until(lambda: "up" in [line.text for line in running.logs()])
    kept = tmp_path / "kept"
    until(lambda: _is_copied(own_folders / victim.id, kept))
    return Lab(tmp_path, own_folders, ended.id, running.id, victim.id, kept)


def _is_copied(folder: Path, kept: Path) -> bool:
    """Its supervisor may still be writing the last of its files."""
    shutil.rmtree(kept, ignore_errors=True)
    try:
        shutil.copytree(folder, kept)
    except (shutil.Error, FileNotFoundError):
        return False
    return True


def _seeds() -> Iterator[int]:
    """One, a few that are always the same, or new ones until the time is over."""
    if _SEED:
        yield int(_SEED)
        return
    if not _SECONDS:
        yield from range(_ROUNDS)
        return
    over = time.monotonic() + _SECONDS
    while time.monotonic() < over:
        yield SystemRandom().randrange(10**9)


@pytest.mark.parametrize("worker", range(_WORKERS))
def test_no_verb_breaks(lab: Lab, worker: int) -> None:
    for seed in _seeds():
        told: list[str] = []
        try:
            _round(lab, seed, told)
        except (Exception, Stuck) as error:
            raise AssertionError(f"SOJOURN_FUZZ_SEED={seed}: {'; '.join(told)}") from error
    lab.check_others()


def _round(lab: Lab, seed: int, told: list[str]) -> None:
    random = Random(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    if seed % _RUNS_ON == _RUNS_ON - 1:
        victim = _task("#!/bin/sh\necho up\nsleep 100000\n", f"v{seed}", lab.root / "workdir").id
        verbs = ["status", "logs", "pull"]
    else:
        victim = lab.victim
        shutil.rmtree(lab.tasks / victim, ignore_errors=True)
        shutil.copytree(lab.kept, lab.tasks / victim)
        verbs = ["status", "read", "logs", "logs --tail 1", "logs --since 1h", "pull", "exec"]
        verbs += ["stop", "start", "interrupt"]
        random.shuffle(verbs)
        verbs += random.choice(([], ["delete"], ["gc --yes"], ["run"]))
    told += mangle(random, lab.tasks / victim / "store")
    code, _ = lab.run("list", *random.choice(((), ("--json",))))
    assert code == 0
    into = ("--into", str(lab.root / "into"))
    for words in verbs:
        told.append(words)
        verb, *options = words.split()
        more = into if verb in ("pull", "delete") else ()
        json_too = ("--json",) if random.random() < 0.5 and verb in _WITH_JSON else ()
        typed = [victim if word == "ID" else word for word in _TYPED.get(verb, ("ID",))]
        lab.run(verb, *typed, *options, *more, *json_too)
    told.append("others")
    lab.check_others()
    told.append("delete --force")
    if (lab.tasks / victim).exists():
        lab.good("delete", "--force", victim, *into)
    assert not (lab.tasks / victim).exists()
    ledger.forget(victim)  # a round may restore it
    shutil.rmtree(lab.root / "into", ignore_errors=True)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
    assert grown < _MEMORY, f"{grown >> 20} MiB more memory"
