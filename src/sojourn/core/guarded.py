"""Files that a program on a computer runs by itself when somebody enters their folder.

A machine that wrote one of them into results would run what it likes on the laptop: `git status`
runs what `core.fsmonitor` in `.git/config` says. Or it would have the laptop upload what should
stay there, such as `.git`: `.sojournignore` says what goes up, and `sojourn.toml` which folder.
So a pull neither creates nor replaces them, unless its output names them. The list is in
docs/reference.md as well.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["GUARDED", "guarded_name", "guarded_part", "plain_name"]

GUARDED = (
    *(".git", ".hg", ".jj", ".sl"),  # hooks, and programs that their configuration names
    *(".envrc", ".mise", ".mise.toml", ".mise.local.toml"),  # direnv and mise, at `cd`
    *("mise.toml", "mise.local.toml"),
    *(".vscode", ".idea", ".devcontainer", ".devcontainer.json"),  # editors: tasks, containers
    *(".zed", ".helix", ".cursor", ".claude", ".mcp.json"),  # editors, agents: servers, hooks
    *(".exrc", ".vimrc", ".nvimrc", ".nvim.lua"),  # Vim and Neovim
    *(".dir-locals.el", ".dir-locals-2.el"),  # Emacs
    *(".sojournignore", "sojourn.toml"),  # what the next run uploads, and where it runs
)
"""Names at any depth; of a folder, all that is in it."""

# HFS+ does not see them in names, so `.g\u200cit` is `.git` there.
_UNSEEN = dict.fromkeys(
    [0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_NAMES = frozenset(GUARDED)
_ANY = re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, GUARDED))})(?=/|$)", re.IGNORECASE)


def guarded_part(path: str) -> str:
    """The path up to the first name on the list; empty if there is none.

    Names are compared as file systems do that do not tell cases apart.
    """
    if path.isascii():  # nearly all are, and there may be a million
        found = _ANY.search(path)
        return path[: found.end()] if found else ""
    end = -1
    while end < len(path):
        start = end + 1
        end = path.find("/", start)
        end = len(path) if end < 0 else end
        if plain_name(path[start:end]) in _NAMES:
            return path[:end]
    return ""


def guarded_name(path: str, output: str) -> str:
    """What names a path that an output leaves out: its guarded part, or the path itself."""
    above = "" if output == "." else f"{output.rstrip('/')}/"
    below = guarded_part(path[len(above) :]) if path.startswith(above) else ""
    return above + below if below else path


def plain_name(name: str) -> str:
    """As file systems compare it that tell neither cases nor unseen characters apart."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", name.translate(_UNSEEN)).casefold()
