"""The outputs of all ranks, joined into one tree.

Where two ranks wrote different contents to one path, the lowest rank keeps the name and the
others get `name.rankN`. What a rank left as it was pushed gives way to what another one wrote.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.storage.manifest import FOLDER, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sojourn.core.context import Context
    from sojourn.storage.guard import Guard

__all__ = ["Base", "Joined", "free_name", "untouched"]

_NAME = 255  # the most bytes of a name

Base = Mapping[str, Entry]
"""What was pushed, by its path."""


@dataclass
class Joined:
    """What is to be there in the end, by its local path: folders before what is in them."""

    base: Base
    entries: dict[str, Entry] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    withheld: dict[str, list[Entry]] = field(default_factory=dict)

    def withhold(self, guard: Guard) -> None:
        """Leave out what stays in the store; keeps the results in it by the part they are in.

        What a rank left as it was pushed is none.
        """
        parts = {path: part for path in self.entries if (part := guard.part(path))}
        for path, part in parts.items():
            entry = self.entries.pop(path)
            if entry.kind != FOLDER and not untouched(entry, self.base):
                self.withheld.setdefault(part, []).append(entry)

    def add(
        self, ctx: Context, rank: int, entries: Iterable[Entry], objects: Mapping[str, int]
    ) -> None:
        """Join what another rank has; from the lowest rank to the highest."""
        self.objects.update(objects)
        renamed: dict[str, str] = {}  # folders that had to give way to a file of another rank
        for entry in entries:
            path = _under(renamed, entry.path)
            if path != entry.path and entry.kind == FOLDER:
                renamed[entry.path] = path
            other = self.entries.get(path)
            if other is None or (entry.kind == other.kind == FOLDER):
                self.entries.setdefault(path, entry._replace(path=path))
            elif entry.same_content(other) or untouched(entry, self.base):
                continue
            elif untouched(other, self.base):
                self.entries[path] = entry._replace(path=path)
            else:
                name = free_name(self._is_result, path, f".rank{rank}")
                if entry.kind == FOLDER:
                    renamed[entry.path] = name
                self.entries[name] = entry._replace(path=name)
                ctx.warn(
                    f"Ranks wrote different contents to {path}; "
                    f"kept the version of rank {rank} as {name}"
                )

    def _is_result(self, path: str) -> bool:
        """What was only pushed, as a former run left it, is none."""
        return path in self.entries and not untouched(self.entries[path], self.base)


def untouched(entry: Entry, base: Base) -> bool:
    """Whether a rank left it as it was pushed; of a folder, what is in it would tell.

    The same bytes written once more have another time: they are a result.
    """
    pushed = base.get(entry.path)
    return (
        pushed is not None
        and entry.kind != FOLDER
        and entry.mtime == pushed.mtime
        and entry.same_content(pushed)
    )


def _under(renamed: dict[str, str], path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{renamed[folder]}/{name}" if folder in renamed else path


def free_name(taken: Callable[[str], bool], path: str, suffix: str) -> str:
    """The path with a suffix that nothing has yet; a name that gets too long is shortened."""
    folder, slash, name = path.rpartition("/")
    number = 1
    while True:
        end = suffix if number == 1 else f"{suffix}.{number}"
        free = folder + slash + os.fsdecode(os.fsencode(name)[: _NAME - len(end)]) + end
        if not taken(free):
            return free
        number += 1
