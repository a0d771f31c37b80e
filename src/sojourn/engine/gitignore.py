"""What stays at home: by default, by .sojournignore files, and if asked for, by git's rules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sojourn.core.above import FromAbove
from sojourn.core.errors import InvalidInput
from sojourn.core.filters import DEFAULT_IGNORED
from sojourn.engine.wildmatch import Rule, parse_rules
from sojourn.storage.beneath import Beneath, is_elsewhere
from sojourn.storage.files import opened, read_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

__all__ = ["OWN_FILE", "IgnoreRules"]

OWN_FILE = ".sojournignore"
_GIT_FILE = ".gitignore"


class IgnoreRules:
    """Decides what is not uploaded, of what is below one folder, as `git check-ignore` does.

    `.sojournignore` files always count, and where one of their rules matches, it decides. With
    `git`, `.git` itself, .gitignore files and .git/info/exclude count as well. With `default`, the
    names in DEFAULT_IGNORED come last, and `left_out` has the paths that stay at home for no other
    reason. `never`: paths that stay at home whatever any file says. The folder itself is never
    ignored, whatever files above it say: the user asked for it. Each file is read once, when a
    path in its folder is first asked about. The user's own global excludes do not count.
    """

    def __init__(
        self,
        workdir: Path,
        *,
        git: bool = False,
        default: bool = False,
        never: Collection[str] = (),
    ) -> None:
        self.left_out: set[str] = set()
        self._never = never
        there = Beneath(workdir)
        self._kinds: list[_Files | _Names] = [_Files(workdir, there, OWN_FILE)]
        if git:
            # First, as for git itself: no `!.*` of a .gitignore file brings it back.
            self._kinds += [_Names((".git",)), _GitFiles(workdir, there, _GIT_FILE)]
        self._default = _Names(DEFAULT_IGNORED) if default else None
        if self._default:
            self._kinds.append(self._default)
        self._ignored = FromAbove(self._matches, top=False)

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether this path stays at home; all that is in an ignored folder does."""
        return self._ignored.above(path) or self._matches(path, folder=folder)

    def _matches(self, path: str, *, folder: bool = True) -> bool:
        """Whether the rules name this very path."""
        if path in self._never:
            return True
        parent = path.rpartition("/")[0]
        for kind in self._kinds:
            for source in kind.valid_in(parent):
                for rule in source.rules:
                    if rule.matches(source.relative(path), folder=folder):
                        if kind is self._default:
                            self.left_out.add(path)
                        return not rule.negated
        return False


class _Names:
    """Rules that are the same in every folder."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sources = [_Source(parse_rules("\n".join(names)))]

    def valid_in(self, folder: str) -> list[_Source]:
        return self._sources


class _Files:
    """All files of one name, in the workdir and in its folders."""

    def __init__(self, workdir: Path, there: Beneath, name: str) -> None:
        self._workdir = workdir
        self._there = there
        self._name = name
        self._rules: dict[str, list[_Source]] = {}

    def valid_in(self, folder: str) -> list[_Source]:
        """The rules for what is in a folder, those of the nearest file first."""
        unread = []
        outer = folder
        while outer not in self._rules:
            unread.append(outer)
            if not outer:
                break
            outer = outer.rpartition("/")[0]
        for each in reversed(unread):
            above = self._rules[each.rpartition("/")[0]] if each else self._outer()
            rules = self._read(each)
            own = _Source(rules, cut=len(each) + 1 if each else 0)
            self._rules[each] = [own, *above] if rules else above
        return self._rules[folder]

    def _read(self, folder: str) -> list[Rule]:
        try:
            with opened(self._there.folder(folder), self._name) as file:
                return parse_rules(os.fsdecode(read_whole(file, os.fstat(file).st_size)))
        except OSError as error:
            if is_elsewhere(error):
                return []
            file_name = f"{self._workdir}/{folder}/{self._name}"
            raise InvalidInput(file_name, f"could not read file: {error.strerror}") from error

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
