"""Text that goes to a terminal without doing anything there.

Names of files, reasons and whatever else comes from machines and users may hold control
characters: with them a name could move the cursor, hide lines, or have the terminal type. What
Sojourn says itself passes through here, on terminals and in pipes. The lines of scripts do not:
they are shown as they are, for a log may have colours.
"""

from __future__ import annotations

__all__ = ["escaped", "escaped_lines"]

_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
_CONTROLS = {chr(code): rf"\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
# Bytes of a name that are no text, and would be control characters of a terminal with 8 bits.
_BYTES = {chr(0xDC00 + code): rf"\x{code:02x}" for code in range(0x80, 0xA0)}
# What turns the order of the characters after it round, and other ends of lines.
_DIRECTIONS = {
    chr(code): rf"\u{code:04x}"
    for code in (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F))
} | {chr(code): rf"\u{code:04x}" for code in range(0x2066, 0x206A)}
_TABLE = str.maketrans(_CONTROLS | _BYTES | _DIRECTIONS | _SHORT)


def escaped(text: str) -> str:
    r"""The same in one line: a control character becomes its name, such as \x1b."""
    return text if text.isprintable() else text.translate(_TABLE)


def escaped_lines(text: str) -> str:
    """The same, for texts that may have several lines."""
    return text if text.isprintable() else "\n".join(map(escaped, text.split("\n")))
