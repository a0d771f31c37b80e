from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.errors import InvalidInput
from sojourn.core.filters import Filters
from sojourn.core.interfaces import Ignore
from sojourn.engine.gitignore import IgnoreRules
from sojourn.storage.scan import scan


def git(folder: Path, *arguments: str, given: str = "", allowed: tuple[int, ...] = (0,)) -> str:
    """Run git without anybody's own configuration."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert ran.returncode in allowed, ran.stderr
    return ran.stdout


def make(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def walk(folder: Path) -> Iterator[tuple[str, bool]]:
    for root, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        base = Path(root).relative_to(folder)
        yield from (((base / name).as_posix(), True) for name in folders)
        yield from (((base / name).as_posix(), False) for name in files if name != ".git")


def ignored_by_git(folder: Path) -> set[str]:
    paths = "\0".join(f"./{path}" for path, _ in walk(folder))
    told = git(folder, "check-ignore", "--no-index", "-z", "--stdin", given=paths, allowed=(0, 1))
    return {path.removeprefix("./") for path in told.split("\0") if path}


def ignored_by_us(folder: Path) -> set[str]:
    ignore: Ignore = IgnoreRules(folder, git=True)
    return {path for path, is_folder in walk(folder) if ignore(path, folder=is_folder)}


TREE = (
    "a.log",
    "keep.log",
    "build/out.bin",
    "build/keep/x",
    "src/build",
    "src/a.log",
    "src/deep/down/a.log",
    "src/deep/down/keep.log",
    "src/deep/data/x",
    "data/raw/1.csv",
    "data/raw/.gitkeep",
    "data/keep.csv",
    "space name",
    "trailing ",
    "#hash",
    "!bang",
    "foo/bar/baz",
    "foo/baz",
    "q?",
    "qq",
    "a[b]",
    "café",
)

REPOSITORIES: dict[str, dict[str, str]] = {
    "plain names match at any depth": {".gitignore": "a.log\nbuild\n"},
    "negation": {".gitignore": "*.log\n!keep.log\n"},
    "the last match wins": {".gitignore": "!keep.log\n*.log\n"},
    "anchored": {".gitignore": "/build\n/a.log\n"},
    "a slash in the middle anchors": {".gitignore": "foo/baz\ndeep/data\n"},
    "folders only": {".gitignore": "build/\nbaz/\n"},
    "nothing comes back from an ignored folder": {".gitignore": "build/\n!build/keep/x\n"},
    "all in a folder but one": {".gitignore": "data/*\n!data/keep.csv\n"},
    "all in a folder but one, at any depth": {
        ".gitignore": "data/**\n!data/raw/\n!data/keep.csv\n!data/raw/.gitkeep\n"
    },
    "bringing a folder back does not bring back what is in it": {
        ".gitignore": "*.log\n!src\n!deep/\n"
    },
    "everything but": {".gitignore": "/*\n!/foo\n/foo/*\n!/foo/bar\n"},
    "nested files": {
        ".gitignore": "*.log\nx\n",
        "src/.gitignore": "!a.log\n/build\n",
        "src/deep/.gitignore": "a.log\n!x\n",
        "build/.gitignore": "*\n!.gitignore\n",
    },
    "files in ignored folders are not read": {
        ".gitignore": "build/\n",
        "build/.gitignore": "!*\n",
    },
    "two stars": {".gitignore": "**/down\nfoo/**/baz\nsrc/**\n!src/deep/**/x\n"},
    "two stars within a name": {".gitignore": "k**p.log\n"},
    "spaces and escapes": {
        ".gitignore": "space name   \ntrailing\\ \n\\#hash\n\\!bang\nq\\?\na\\[b\\]\n\\\n"
    },
    "comments and blank lines": {".gitignore": "# a.log\n\n   \n #hash\n"},
    "classes": {".gitignore": "[!a-z]*\n*.[[:alpha:]]og\nq[?]\nfo[]o]\n[z-a]\n[\n"},
    "windows line ends": {".gitignore": "a.log\r\nbuild/\r\n"},
    "a byte order mark": {".gitignore": "\ufeffa.log\n"},
    "no line end": {".gitignore": "a.log"},
    "info/exclude gives way to .gitignore": {
        ".git/info/exclude": "*.log\n/build\n",
        "src/.gitignore": "!a.log\n",
    },
    "beyond ASCII": {".gitignore": "caf*\n!café\n"},
}


@pytest.mark.parametrize("name", REPOSITORIES)
def test_as_git_does(tmp_path: Path, name: str) -> None:
    make(tmp_path, dict.fromkeys(TREE, ""))
    git(tmp_path, "init", "-q")
    make(tmp_path, REPOSITORIES[name])
    assert ignored_by_us(tmp_path) == ignored_by_git(tmp_path)


def test_the_comparison_can_tell(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(TREE, ""))
    git(tmp_path, "init", "-q")
    make(tmp_path, REPOSITORIES["all in a folder but one, at any depth"])
    assert ignored_by_us(tmp_path) == {"data/raw/1.csv"}


_SEGMENTS = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "[b-a]", "[]a]", "[", "\\a", "\\*"]
)
_PATTERNS = st.builds(
    lambda bang, start, parts, end: bang + start + "/".join(parts) + end,
    st.sampled_from(["", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(_SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "/", " "]),
)
_FILES = st.lists(_PATTERNS, max_size=4).map("\n".join)


@settings(max_examples=40)
@given(top=_FILES, nested=_FILES, exclude=_FILES)
def test_as_git_does_with_anything(top: str, nested: str, exclude: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        git(folder, "init", "-q")
        tree = ["a/a/a", "a/a/b", "a/b/ab", "a/ab", "b/a", "b/b/a", "ab/a/b", "bb"]
        make(folder, dict.fromkeys(tree, ""))
        make(folder, {".gitignore": top, "a/.gitignore": nested, ".git/info/exclude": exclude})
        assert ignored_by_us(folder) == ignored_by_git(folder)


def test_git_itself_is_always_ignored(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "!.git\n!.git/**\n"})
    ignore = IgnoreRules(tmp_path, git=True)
    assert ignore(".git", folder=True)
    assert ignore(".git/config", folder=False)
    assert ignore("module/.git", folder=False)
    assert not ignore(".gitignore", folder=False)
    assert not ignore("x.git", folder=True)


def test_a_part_of_a_working_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    workdir = tmp_path / "sub" / "work"
    make(
        tmp_path,
        {
            ".gitignore": "*.log\n/sub/work/one\n/two\nwork/\n",
            ".git/info/exclude": "sub/*/three\n",
            "sub/.gitignore": "!b.log\n",
            "sub/work/.gitignore": "four\n",
        },
    )
    make(workdir, dict.fromkeys(["a.log", "b.log", "one", "two", "three", "four", "x/one"], ""))
    assert ignored_by_us(workdir) == {"a.log", "one", "three", "four"}


def test_files_above_count_only_in_a_working_tree(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "x\n", "work/.gitignore": "y\n", "work/x": "", "work/y": ""})
    assert ignored_by_us(tmp_path / "work") == {"y"}


def test_a_second_working_tree_shares_exclude(tmp_path: Path) -> None:
    make(tmp_path, {"main/x": ""})
    main = tmp_path / "main"
    git(main, "init", "-q")
    git(main, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-mx")
    git(main, "worktree", "add", "-q", "../second")
    make(main, {".git/info/exclude": "*.tmp\n"})
    make(tmp_path / "second", {"a.tmp": "", "b": ""})
    assert (tmp_path / "second" / ".git").is_file()
    assert ignored_by_us(tmp_path / "second") == {"a.tmp"} == ignored_by_git(tmp_path / "second")


def test_a_symlink_is_not_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {"rules": "x\n", "x": ""})
    (tmp_path / ".gitignore").symlink_to("rules")
    assert ignored_by_us(tmp_path) == set()


def test_each_file_is_read_once_and_only_when_needed(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "x\n", "sub/.gitignore": "y\n"})
    ignore = IgnoreRules(tmp_path, git=True)
    make(tmp_path, {".gitignore": "z\n"})
    assert ignore("z", folder=False)
    make(tmp_path, {".gitignore": "changed\n", "sub/.gitignore": "w\n"})
    assert not ignore("changed", folder=False)
    assert ignore("sub/w", folder=False)


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {".gitignore": "x\n"})

    def denied(*_: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("sojourn.engine.gitignore.read_whole", denied)
    with pytest.raises(InvalidInput, match=r"\.gitignore: could not read file: Permission denied"):
        IgnoreRules(tmp_path, git=True)("x", folder=False)


def test_in_a_scan(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, dict.fromkeys(TREE, ""))
    make(tmp_path, {".gitignore": "data/*\n!data/keep.csv\nsrc/\nbuild/\n*.log\n"})
    found = scan(
        tmp_path, Filters(("foo/", "qq/")), IgnoreRules(tmp_path, git=True), _must_not_skip
    )
    assert set(found) == {
        ".gitignore",
        "data",
        "data/keep.csv",
        "space name",
        "trailing ",
        "#hash",
        "!bang",
        "q?",
        "qq",
        "a[b]",
        "café",
    }


def _must_not_skip(path: str, reason: str, *, lost: bool = False) -> None:
    raise AssertionError((path, reason, lost))


def test_sojournignore_is_read_as_git_reads_its_own(tmp_path: Path) -> None:
    for folder, name in (("git", ".gitignore"), ("own", ".sojournignore")):
        make(
            tmp_path / folder,
            {
                name: "*.log\n/data/*\n!/data/keep\nbuild/\n",
                f"deep/{name}": "!a.log\n",
                **dict.fromkeys(("a.log", "deep/a.log", "data/x", "data/keep", "build/x"), ""),
            },
        )
    git_rules = IgnoreRules(tmp_path / "git", git=True)
    own_rules: Ignore = IgnoreRules(tmp_path / "own")
    expected = {path for path, folder in walk(tmp_path / "git") if git_rules(path, folder=folder)}
    found = {path for path, folder in walk(tmp_path / "own") if own_rules(path, folder=folder)}
    assert found == expected == {"a.log", "data/x", "build", "build/x"}


def test_git_has_no_say_unless_asked(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*\n", ".git/config": "", "x": ""})
    rules = IgnoreRules(tmp_path)
    assert not [path for path in (".git", "x") if rules(path, folder=path == ".git")]


def test_sojournignore_wins_over_gitignore(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "data/\n*.bin\n!keep.bin\n",
            ".sojournignore": "!data/\nkeep.bin\n",
            "deep/.gitignore": "!keep.bin\n",
        },
    )
    rules = IgnoreRules(tmp_path, git=True)
    assert not rules("data", folder=True)
    assert not rules("data/x", folder=False)
    assert rules("data/x.bin", folder=False)
    assert rules("keep.bin", folder=False)
    assert rules("deep/keep.bin", folder=False)
    assert rules(".git", folder=True)


def test_sojournignore_above_the_workdir_does_not_count(tmp_path: Path) -> None:
    make(tmp_path, {".sojournignore": "*\n", ".git/config": "", "work/x": ""})
    assert not IgnoreRules(tmp_path / "work", git=True)("x", folder=False)


def _left(folder: Path, *, git: bool = False) -> tuple[set[str], set[str]]:
    """What stays at home of a tree, and what of it for no other reason than the default."""
    rules = IgnoreRules(folder, git=git, default=True)
    paths = sorted(path for path in folder.rglob("*"))
    away = {
        name
        for path in paths
        if rules(name := path.relative_to(folder).as_posix(), folder=path.is_dir())
    }
    return away, rules.left_out


def test_names_of_the_default_stay_at_home_at_any_depth(tmp_path: Path) -> None:
    away = {".git", "a/.venv", "a/b/__pycache__", "sub/.git", "web/node_modules"}
    inside = {".git/config", "a/.venv/x", "a/b/__pycache__/y", "web/node_modules/z"}
    make(tmp_path, dict.fromkeys([*inside, "sub/.git", "git", "a/venv/x", "a/.venvs"], ""))
    assert _left(tmp_path) == (away | inside, away)


def test_a_file_brings_back_what_the_default_leaves_out(tmp_path: Path) -> None:
    folders = (".git", "a/.git", "node_modules", "a/node_modules")
    make(tmp_path, {f"{folder}/x": "" for folder in folders})
    make(tmp_path, {".sojournignore": "!.git\n!/node_modules\n"})
    assert _left(tmp_path) == ({"a/node_modules", "a/node_modules/x"}, {"a/node_modules"})


@pytest.mark.parametrize("line", ["!.git", "!.*"])
def test_no_file_of_git_brings_back_the_repository(tmp_path: Path, line: str) -> None:
    make(tmp_path, {".git/config": "", "a": "", ".gitignore": f"{line}\n!.venv\n", ".venv/x": ""})
    assert _left(tmp_path, git=True) == ({".git", ".git/config"}, set())
