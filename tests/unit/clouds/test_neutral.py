"""Nothing outside a cloud's folder names a cloud: a new one changes nothing there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import sojourn
from sojourn import clouds

_ROOT = Path(sojourn.__file__).parent
_SUFFIXES = {".py", ".sh", ".proto"}
_KNOWN = {"aws", "az", "boto", "boto3", "botocore", "gcp", "k8s", "kubernetes"}
_WORDS = sorted((_KNOWN | set(clouds.KINDS)) - {"local"})  # a common word: only whole texts count
_NAMES = re.compile(rf"(?<![a-z])({'|'.join(_WORDS)})(?![a-z0-9])", re.IGNORECASE)
_ALLOWED = {("core/task.py", "local")}  # the default of a field
_ROOMS = {"kube": {"k8s", "kubernetes"}}  # packages that are for one kind of cloud


def _named(path: Path) -> Iterator[str]:
    text = path.read_text()
    yield from (found[1] for found in _NAMES.finditer(text))
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in clouds.KINDS:
            yield str(node.value)
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith("sojourn.clouds."):
            yield str(node.module)


def test_no_cloud_is_named_outside_its_folder() -> None:
    sources = [path for path in _ROOT.rglob("*") if path.suffix in _SUFFIXES]
    found = {
        (path.relative_to(_ROOT).as_posix(), name)
        for path in sources
        if _ROOT / "clouds" not in path.parents
        for name in _named(path)
        if name.lower() not in _ROOMS.get(path.relative_to(_ROOT).parts[0], ())
    }
    assert found - _ALLOWED == set()


def test_a_cloud_is_found_if_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text("from sojourn.clouds.local.cloud import a\nx = 'local'\ny = 'AWS_PROFILE'\n")
    assert sorted(_named(file)) == ["AWS", "local", "sojourn.clouds.local.cloud"]
