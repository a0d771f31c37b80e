"""What `startup_script` may be: a script, or one in base64; nothing that only cloud-init reads."""

from __future__ import annotations

import base64

__all__ = ["decoded", "of_cloud_init"]

# How its formats begin, and what to call them.
_FORMATS = (
    ("#cloud-config", "#cloud-config"),
    ("#cloud-boothook", "#cloud-boothook"),
    ("#include", "#include"),
    ("#part-handler", "#part-handler"),
    ("## template:", "a template of cloud-init"),
    ("Content-Type: multipart", "MIME multi-part"),
    ("MIME-Version:", "MIME multi-part"),
)


def decoded(text: str) -> str | None:
    """None if it is no base64; a word that is by chance has no text in it."""
    try:
        found = base64.b64decode("".join(text.split("\n")), validate=True).decode()
    except ValueError:
        return None
    return found if all(c.isprintable() or c in "\t\r\n" for c in found) else None


def of_cloud_init(text: str) -> str:
    """What to call a text that cloud-init would read, and no shell; empty: it is none.

    The old provider handed over whatever it got, so it took all of them.
    """
    plain = text if text.lstrip().startswith("#") else decoded(text) or text
    start = plain.lstrip().lower()
    return next((name for sign, name in _FORMATS if start.startswith(sign.lower())), "")
