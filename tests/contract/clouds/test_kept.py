"""What is kept when a task has ended: files that nobody claimed, and the log."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.events import Warned
from sojourn.storage import layout
from tests.contract.clouds.lab import Lab, log_of

_MODEL = "mkdir -p results; echo weights > results/model.pt"


def _warnings(lab: Lab) -> str:
    return "\n".join(event.message for event in lab.events if isinstance(event, Warned))


def _unsaid(lab: Lab, output: str | None = None) -> sojourn.Storage:
    return sojourn.Storage(workdir=str(lab.workdir), output=output)


def test_files_of_a_task_without_an_output_are_not_deleted(lab: Lab) -> None:
    result = lab.run(_MODEL, storage=_unsaid(lab))
    assert result.status is sojourn.State.SUCCEEDED
    assert result.kept == "it left files but has no output folder"
    told = _warnings(lab)
    assert "results/model.pt (8 B)" in told
    assert f"sojourn pull {result.id} --output ." in told
    assert f"sojourn delete --no-pull {result.id}" in told
    assert "\n" not in told
    handle = sojourn.get(result.id)
    assert [handle.id for handle, _ in sojourn.gc()] == []
    with pytest.raises(Conflict, match="but has no output folder"):
        handle.delete()
    assert handle.pull() == []
    assert handle.pull(output=".") == ["results/model.pt"]
    assert (lab.workdir / "results/model.pt").read_text() == "weights\n"
    handle.delete(fetch=False)


def test_a_task_that_failed_keeps_unclaimed_files_as_well(lab: Lab) -> None:
    result = lab.run(f"{_MODEL}; exit 3", storage=_unsaid(lab))
    assert (result.exit_code, bool(result.kept)) == (3, True)
    sojourn.get(result.id).delete(fetch=False)


def test_a_changed_file_counts_and_an_untouched_one_does_not(lab: Lab) -> None:
    (lab.workdir / "data.csv").write_text("1\n")
    (lab.workdir / "model.pt").write_text("old\n")
    script = "touch data.csv; mkdir __pycache__; echo x > __pycache__/a.pyc"
    assert lab.run(script, storage=_unsaid(lab)).kept == ""
    result = lab.run("echo new > model.pt", storage=_unsaid(lab))
    assert "model.pt (4 B)" in _warnings(lab)
    sojourn.get(result.id).delete(fetch=False)


def test_an_output_with_nothing_but_old_files_is_as_good_as_empty(lab: Lab) -> None:
    (lab.workdir / "results").mkdir()
    (lab.workdir / "results/old.bin").write_text("of the last run\n")
    script = "mkdir output2; echo new > output2/new.bin"
    result = lab.run(script, storage=_unsaid(lab, "results"))
    assert result.kept == "it left files but changed nothing in its output folder"
    told = _warnings(lab)
    assert "output2/new.bin (4 B)" in told
    assert f"sojourn pull {result.id} --output ." in told
    handle = sojourn.get(result.id)
    assert [handle.id for handle, _ in sojourn.gc()] == []
    assert handle.pull(output=".") == ["output2/new.bin"]
    handle.delete()


def test_files_beside_the_output_are_told_of_before_they_go(lab: Lab) -> None:
    script = "mkdir results; echo 1 > results/a; echo 2 > b; echo 3 > c"
    result = lab.run(script, storage=_unsaid(lab, "results"))
    assert result.kept == ""
    told = _warnings(lab)
    assert "Discarding 2 new or changed files (4 B), such as b outside the output" in told
    assert "--output ." in told


def test_gc_names_files_beside_the_output_before_they_go(lab: Lab) -> None:
    script = "mkdir results; echo 1 > results/a; echo 2 > b"
    handle = lab.create(script, storage=_unsaid(lab, "results"))
    handle.wait()
    [(found, why)] = sojourn.gc()
    assert (found.id, why) == (
        handle.id,
        "ended: succeeded, with b (2 B) outside its output, which `pull --output .` downloads",
    )
    handle.delete()


def test_an_output_that_was_written_once_more_with_the_same_bytes_is_none_of_it(lab: Lab) -> None:
    (lab.workdir / "results").mkdir()
    (lab.workdir / "results/model").write_text("same\n")
    script = "rm results/model; echo same > results/model; echo 2 > b"
    assert lab.run(script, storage=_unsaid(lab, "results")).kept == ""


def test_what_programs_here_would_run_stays_in_the_store_until_it_is_asked_for(lab: Lab) -> None:
    (lab.workdir / ".git").mkdir()
    (lab.workdir / ".git/config").write_text("mine\n")
    script = (
        "mkdir -p .git sub/.git; echo theirs | tee .git/config sub/.git/config > .envrc; echo 1 > a"
    )
    result = lab.run(script, storage=_unsaid(lab, "."))
    assert result.kept == "it left files but programs on this computer could run them by themselves"
    assert (lab.workdir / "a").read_text() == "1\n"
    assert (lab.workdir / ".git/config").read_text() == "mine\n"
    assert not (lab.workdir / ".envrc").exists()
    assert not (lab.workdir / "sub/.git").exists()
    assert "Not downloading 3 files" in _warnings(lab)
    handle = sojourn.get(result.id)
    with pytest.raises(Conflict, match="could run them by themselves"):
        handle.delete()
    elsewhere = lab.workdir.parent / "elsewhere"
    assert handle.pull(elsewhere, output=".git") == [".git/config"]
    assert (elsewhere / ".git/config").read_text() == "theirs\n"
    handle.delete(fetch=False)


def test_a_repository_that_results_would_complete_here_keeps_its_task(lab: Lab) -> None:
    """The task alone has none; with what is here, and was never uploaded, it would be one."""
    (lab.workdir / ".sojournignore").write_text("results\n")
    (lab.workdir / "results/r").mkdir(parents=True)
    (lab.workdir / "results/r/HEAD").write_text("ref: refs/heads/main\n")
    script = "mkdir -p results/r; cd results/r; mkdir objects refs; echo x | tee objects/a > config"
    result = lab.run(script, storage=_unsaid(lab, "results"))
    assert result.kept == "it left files but programs on this computer could run them by themselves"
    assert not (lab.workdir / "results/r/config").exists()
    sojourn.get(result.id).delete(fetch=False)


def test_nothing_but_files_in_a_folder_that_stays_as_it_is_here(lab: Lab) -> None:
    (lab.workdir / ".venv").mkdir()
    result = lab.run("mkdir .venv; echo weights > .venv/model", storage=_unsaid(lab, "."))
    assert result.kept == "it left files but .venv is here already, and was not uploaded"
    handle = sojourn.get(result.id)
    with pytest.raises(Conflict, match=r"\.venv/model \(8 B\) but \.venv is here") as caught:
        handle.delete()
    assert f"sojourn pull {result.id} --output .venv" in caught.value.hint
    assert handle.pull(output=".venv") == [".venv/model"]
    handle.delete()


def test_what_is_not_uploaded_by_default_is_left_as_it_is(lab: Lab) -> None:
    for folder in (".venv", "__pycache__"):
        (lab.workdir / folder).mkdir()
        (lab.workdir / folder / "a").write_text("mine\n")
    script = (
        "test ! -e .venv && test ! -e __pycache__ || exit 3\n"
        "for d in .venv __pycache__; do mkdir $d; echo theirs | tee $d/a > $d/b; done; echo 1 > c"
    )
    result = lab.run(script, storage=_unsaid(lab, "."))
    assert (result.exit_code, result.kept) == (0, "")
    assert (lab.workdir / "c").read_text() == "1\n"
    for folder in (".venv", "__pycache__"):
        assert [path.name for path in (lab.workdir / folder).iterdir()] == ["a"]
        assert (lab.workdir / folder / "a").read_text() == "mine\n"
    assert "Not downloading .venv: already here, and was not uploaded" in _warnings(lab)
    assert (
        "Discarding 2 new or changed files (14 B), such as .venv/a in .venv. Next time, use "
        "`--output .venv` to download it by name, or `--keep` to choose later."
    ) in _warnings(lab)


def test_an_output_that_is_blank_on_purpose_discards_what_is_left(lab: Lab) -> None:
    result = lab.run(_MODEL, storage=_unsaid(lab, ""))
    assert (result.kept, _warnings(lab)) == ("", "")


def test_files_are_discarded_only_if_somebody_says_so(lab: Lab) -> None:
    handle = lab.create(_MODEL, storage=_unsaid(lab))
    handle.wait()
    with pytest.raises(Conflict, match="but has no output folder"):
        handle.delete()
    assert handle.exists()
    handle.delete(force=True)
    assert "Could not download the results" in _warnings(lab)
    assert not handle.exists()


def test_a_report_that_cannot_be_read_keeps_no_owner_from_deleting(lab: Lab) -> None:
    """A script can have its machine's rights, and write what it likes there."""
    handle = lab.create("mkdir output; echo 1 > output/a; sleep 300")
    lab.until_stored(handle, "a", lab.workdir)
    store = lab.store(handle)
    store.put(layout.report_path(0, 1), b"[" * 60_000)
    store.put(layout.attempt_path(0, 2), b"[" * 60_000)
    handle.stop()
    handle.delete()
    assert not handle.exists()
    assert lab.output() == {"a": "1\n"}
    assert "Cannot tell whether all results" in _warnings(lab)


@pytest.mark.parametrize(("script", "code"), [("echo out; exit 5", 5), ("echo out", 0)])
def test_the_log_outlives_the_task(lab: Lab, script: str, code: int) -> None:
    result = lab.run(script)
    assert result.exit_code == code
    if result.kept:  # it succeeded without any output
        sojourn.get(result.id).delete()
    log = result.log or Path(str(_saved(result.id)))
    assert log.read_text() == "out\n"


def _saved(id: str) -> Path:
    from sojourn.engine import ledger

    return ledger.log_path(id)


def test_a_task_can_be_kept_always_or_if_it_fails(lab: Lab) -> None:
    failed = lab.run("echo out; exit 1", keep_failed=True)
    assert failed.kept == "you asked to keep it"
    handle = sojourn.get(failed.id)
    assert log_of(handle) == ["out"]
    handle.delete()
    handle.delete()  # a second time changes nothing
    with pytest.raises(NotFound):
        handle.status()
    fine = lab.run("mkdir output; echo 1 > output/x", keep_failed=True)
    assert fine.kept == ""
    kept = lab.run("mkdir output; echo 2 > output/y", keep=True)
    assert kept.kept == "you asked to keep it"
    assert lab.output()["y"] == "2\n"
    sojourn.get(kept.id).delete()
