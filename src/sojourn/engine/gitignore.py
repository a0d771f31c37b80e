"""What git ignores is not uploaded: .gitignore files, at any depth, and .git/info/exclude."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.engine.wildmatch import Rule, parse_rules

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GitIgnore"]


class GitIgnore:
    """Decides as `git check-ignore` does, for what is below one folder.

    The folder may be a part of a working tree, or of none. It is never ignored itself, whatever
    the files above it say: the user asked for it. `.git` always is. Each file is read once, when
    a path in its folder is first asked about. The user's own global excludes do not count.
    """

    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        self._rules: dict[str, list[_Source]] = {}
        self._ignored: dict[str, bool] = {"": False}

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether git leaves this path out; all that is in an ignored folder is ignored."""
        parent, _, name = path.rpartition("/")
        if name == ".git" or self._folder_ignored(parent):
            return True
        for source in self._rules_for(parent):
            for rule in source.rules:
                if rule.matches(source.relative(path), folder=folder):
                    return not rule.negated
        return False

    def _folder_ignored(self, path: str) -> bool:
        if path not in self._ignored:
            self._ignored[path] = self(path, folder=True)
        return self._ignored[path]

    def _rules_for(self, folder: str) -> list[_Source]:
        """Those that are valid in a folder, the nearest file first."""
        if folder not in self._rules:
            above = self._rules_for(folder.rpartition("/")[0]) if folder else self._outer()
            rules = _read(self._workdir / folder / ".gitignore")
            own = _Source(rules, cut=len(folder) + 1 if folder else 0)
            self._rules[folder] = [own, *above] if rules else above
        return self._rules[folder]

    def _outer(self) -> list[_Source]:
        """The files above the workdir, up to the top of the working tree, and info/exclude."""
        workdir = self._workdir.resolve()
        sources = []
        for above in (workdir, *workdir.parents):
            prefix = "" if above == workdir else f"{workdir.relative_to(above).as_posix()}/"
            if above != workdir:
                sources.append(_Source(_read(above / ".gitignore"), prefix=prefix))
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
        raise InvalidInput(str(file), f"cannot be read: {error.strerror}") from error


def _git_folder(git: Path) -> Path:
    """Where a repository keeps what all its working trees share."""
    if git.is_dir():
        return git
    try:
        own = git.parent / git.read_text().partition("gitdir:")[2].strip()
        common = own / "commondir"
        return own / common.read_text().strip() if common.is_file() else own
    except OSError as error:
        raise InvalidInput(str(git), f"cannot be read: {error.strerror}") from error
