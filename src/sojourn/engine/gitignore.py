"""What stays at home: the rules of .sojournignore files, and if asked for, those of git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.engine.wildmatch import Rule, parse_rules

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OWN_FILE", "IgnoreRules"]

OWN_FILE = ".sojournignore"
_GIT_FILE = ".gitignore"


class IgnoreRules:
    """Decides what is not uploaded, of what is below one folder, as `git check-ignore` does.

    `.sojournignore` files always count, and where one of their rules matches, it decides. With
    `git`, .gitignore files, .git/info/exclude and `.git` itself count as well. The folder itself
    is never ignored, whatever files above it say: the user asked for it. Each file is read once,
    when a path in its folder is first asked about. The user's own global excludes do not count.
    """

    def __init__(self, workdir: Path, *, git: bool = False) -> None:
        self._git = git
        self._kinds = [_Files(workdir, OWN_FILE)]
        if git:
            self._kinds.append(_GitFiles(workdir, _GIT_FILE))
        self._ignored: dict[str, bool] = {"": False}

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether this path stays at home; all that is in an ignored folder does."""
        parent, _, name = path.rpartition("/")
        if (self._git and name == ".git") or self._folder_ignored(parent):
            return True
        for kind in self._kinds:
            for source in kind.valid_in(parent):
                for rule in source.rules:
                    if rule.matches(source.relative(path), folder=folder):
                        return not rule.negated
        return False

    def _folder_ignored(self, path: str) -> bool:
        if path not in self._ignored:
            self._ignored[path] = self(path, folder=True)
        return self._ignored[path]


class _Files:
    """All files of one name, in the workdir and in its folders."""

    def __init__(self, workdir: Path, name: str) -> None:
        self._workdir = workdir
        self._name = name
        self._rules: dict[str, list[_Source]] = {}

    def valid_in(self, folder: str) -> list[_Source]:
        """The rules for what is in a folder, those of the nearest file first."""
        if folder not in self._rules:
            above = self.valid_in(folder.rpartition("/")[0]) if folder else self._outer()
            rules = _read(self._workdir / folder / self._name)
            own = _Source(rules, cut=len(folder) + 1 if folder else 0)
            self._rules[folder] = [own, *above] if rules else above
        return self._rules[folder]

    def _outer(self) -> list[_Source]:
        return []


class _GitFiles(_Files):
    def _outer(self) -> list[_Source]:
        """The files above the workdir, up to the top of the working tree, and info/exclude."""
        workdir = self._workdir.resolve()
        sources = []
        for above in (workdir, *workdir.parents):
            prefix = "" if above == workdir else f"{workdir.relative_to(above).as_posix()}/"
            if above != workdir:
                sources.append(_Source(_read(above / self._name), prefix=prefix))
            if (above / ".git").exists():
                exclude = _git_folder(above / ".git") / "info" / "exclude"
                return [*sources, _Source(_read(exclude), prefix=prefix)]
        return []  # not a working tree: only the workdir's own files count


class _Source:
    """The rules of one file, and how its folder sees a path: without `cut`, or with `prefix`."""

    def __init__(self, rules: list[Rule], *, cut: int = 0, prefix: str = "") -> None:
        self.rules = rules
        self._cut = cut
        self._prefix = prefix

    def relative(self, path: str) -> str:
        return self._prefix + path[self._cut :]


def _read(file: Path) -> list[Rule]:
    try:
        if file.is_symlink() or not file.is_file():
            return []  # git does not follow them either
        return parse_rules(os.fsdecode(file.read_bytes()))
    except OSError as error:
        raise InvalidInput(str(file), f"could not read file: {error.strerror}") from error


def _git_folder(git: Path) -> Path:
    """Where a repository keeps what all its working trees share."""
    if git.is_dir():
        return git
    try:
        own = git.parent / git.read_text().partition("gitdir:")[2].strip()
        common = own / "commondir"
        return own / common.read_text().strip() if common.is_file() else own
    except OSError as error:
        raise InvalidInput(str(git), f"could not read file: {error.strerror}") from error
