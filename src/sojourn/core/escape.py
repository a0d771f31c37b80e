"""Text that goes to a terminal without doing anything there.

Names of files, reasons and whatever else comes from machines and users may hold control
characters: with them a name could move the cursor, hide lines, or have the terminal type. What
Sojourn says itself passes through here: on terminals and in pipes, in Terraform's diagnostics, and
in the text of an exception, which Python prints with its traceback. The lines of scripts do not:
they are shown as they are, for a log may have colours. Nor does data for programs: JSON rows have
escapes of their own, and an exception's `message` is the plain text.
"""

from __future__ import annotations

__all__ = ["escaped", "escaped_lines"]

_SHORT = {9: r"\t", 10: r"\n", 13: r"\r"}
# What turns the order of the characters after it round, and other ends of lines.
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))


class _Table(dict[int, str]):
    """What `str.translate` needs, made as it is needed: most texts are printable."""

    def __missing__(self, code: int) -> str:
        self[code] = _SHORT.get(code) or _named(code)
        return self[code]


def _named(code: int) -> str:
    if 0xDC80 <= code < 0xDCA0:  # a byte of a name that is no text, and a control of some terminals
        code -= 0xDC00
    if code < 0x20 or 0x7F <= code < 0xA0:
        return rf"\x{code:02x}"
    if code in _DIRECTIONS or _is_half(code):
        return rf"\u{code:04x}"
    return chr(code)


def _is_half(code: int) -> bool:
    """Of a surrogate pair, and no byte of a name either: nothing can be encoded with it."""
    return 0xD800 <= code < 0xE000 and not 0xDC80 <= code < 0xDD00


_TABLE = _Table()


def escaped(text: str) -> str:
    r"""The same in one line: a control character becomes its name, such as \x1b."""
    return text if text.isprintable() else text.translate(_TABLE)


def escaped_lines(text: str) -> str:
    """The same, for texts that may have several lines."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))
