"""Clouds with a name of the user's: a kind with settings, `[clouds.NAME]` in a settings file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.clouds.kinds import KINDS, about_kind, kind_named
from sojourn.settings import OWN, documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sojourn.core.about import Setting
    from sojourn.settings import Document

__all__ = ["NamedCloud", "named_clouds"]

_TABLE = "clouds"
_KIND = "kind"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class NamedCloud:
    """`origin`: the file and line that it is declared on; none, and it is the kind itself."""

    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)
    document: Document | None = None

    @property
    def origin(self) -> str:
        return self.origin_of()

    def origin_of(self, *setting: str) -> str:
        """The file and line of a setting."""
        return self.document.origin((_TABLE, self.name, *setting)) if self.document else ""


def named_clouds() -> dict[str, NamedCloud]:
    """All of the settings files, by name; one of a project replaces the user's of its name."""
    found: dict[str, NamedCloud] = {}
    for document in documents():
        for name in document.table(_TABLE):
            found[name] = _read(document, name)
    return found


def _read(document: Document, name: str) -> NamedCloud:
    keys = (_TABLE, name)
    values = dict(document.table(*keys))
    if kind_named(name):
        meant = f"the name of a kind of cloud; choose another, such as my-{name}"
        raise document.problem(keys, meant)
    if not _NAME.fullmatch(name):
        raise document.problem(keys, "must be lower-case letters, digits and single hyphens")
    kind = _kind(document, (*keys, _KIND), values.pop(_KIND, None))
    known = {setting.name: setting for setting in about_kind(kind).settings}
    for key, value in values.items():
        if key not in known:
            raise document.problem((*keys, key), _unknown(key, known, kind))
        values[key] = _text(document, (*keys, key), value, known[key])
    return NamedCloud(name, kind, values, document)


def _kind(document: Document, keys: tuple[str, ...], value: Any) -> str:
    wanted = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
    if value is None:
        raise document.problem(keys, f"required: {wanted}")
    kind = kind_named(value) if isinstance(value, str) else ""
    if not kind:
        raise document.problem(keys, f"must be {wanted}, got {value!r}{_near(str(value), KINDS)}")
    return kind


def _unknown(key: str, known: Iterable[str], kind: str) -> str:
    available = ", ".join((_KIND, *known))
    return f"unknown setting of {kind} (available: {available}){_near(key, known)}"


def _near(word: str, known: Iterable[str]) -> str:
    import difflib  # only for those who mistyped

    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _text(document: Document, keys: tuple[str, ...], value: Any, setting: Setting) -> str:
    if setting.path and document.project:  # which may run a program, as that of a kubeconfig does
        raise document.problem(
            keys, f"not for a project, whose file may be a stranger's; name the cloud in {OWN}"
        )
    if not isinstance(value, str) or not value or not value.isprintable():
        raise document.problem(keys, f"must be a string, got {value!r}")
    if not setting.path:
        return value
    return os.path.join(document.path.parent.absolute(), os.path.expanduser(value))
