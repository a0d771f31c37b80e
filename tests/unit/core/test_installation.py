"""The command that adds an extra to an installation."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from sojourn.core.installation import install_command

_ROOT = Path(__file__).parents[3]
_ASK = "from sojourn.core.installation import install_command as c; print(c('terraform'))"
_OF_THIS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # environment, which uv must not use
_METADATA = """Metadata-Version: 2.4
Name: sojourn
Version: 0.1.0
Provides-Extra: aws
Requires-Dist: absent>=1; extra == 'aws'
Requires-Dist: missing; extra == 'aws'
Provides-Extra: k8s
Requires-Dist: present>=1; extra == 'k8s'
Provides-Extra: all
Requires-Dist: sojourn[aws,k8s]; extra == 'all'
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that has the extra `k8s`."""
    packages = tmp_path / "packages"
    for name, text in (("sojourn", _METADATA), ("present", "Name: present\nVersion: 1\n")):
        (packages / f"{name}-1.dist-info").mkdir(parents=True)
        (packages / f"{name}-1.dist-info/METADATA").write_text(text)
    monkeypatch.setattr(sys, "path", [str(packages)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def _from(prefix: Path, source: object, *, gone: bool = False) -> None:
    """Places of this computer are below `prefix`."""
    text = json.dumps(source).replace("file://", prefix.as_uri())
    place = unquote(urlsplit(json.loads(text).get("url", "")).path)
    if not gone and place.startswith(f"{prefix}/"):
        Path(place).mkdir(parents=True, exist_ok=True)
    _written(prefix, text)


def _written(prefix: Path, text: str) -> None:
    (prefix / "packages/sojourn-1.dist-info/direct_url.json").write_text(text)


_CLONE = {"url": "file:///home/you/my%20clone", "dir_info": {}}
_EDITABLE = {"url": "file:///home/you/clone", "dir_info": {"editable": True}}


def test_uv_tool_and_pipx_keep_what_is_there(prefix: Path) -> None:
    _from(prefix, _CLONE)
    (prefix / "pipx_metadata.json").touch()
    command = f"install --force '{prefix}/home/you/my clone[aws,k8s]'"
    assert install_command("aws") == f"pipx {command}"
    (prefix / "uv-receipt.toml").touch()
    assert install_command("aws") == f"uv tool {command}"
    _from(prefix, _EDITABLE)
    command = f"install --force --editable '{prefix}/home/you/clone[k8s]'"
    assert install_command("k8s") == f"uv tool {command}"


def test_an_environment_of_uv_has_no_pip(prefix: Path) -> None:
    _from(prefix, _CLONE)
    python = prefix / "bin/python"
    expected = f"uv pip install --python {python} '{prefix}/home/you/my clone[aws]'"
    assert install_command("aws") == expected


@pytest.mark.parametrize("beside", ["", "uv-receipt.toml"])
def test_what_an_extra_adds_is_named_if_the_clone_was_removed(prefix: Path, beside: str) -> None:
    """As after an installation in the build of an image."""
    _from(prefix, _CLONE, gone=True)
    (prefix / (beside or "any")).touch()
    python = prefix / "bin/python"
    assert install_command("aws") == f"uv pip install --python {python} 'absent>=1' missing"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (_CLONE, ["FOLDER/home/you/my clone[aws]"]),
        (_EDITABLE, ["-e", "FOLDER/home/you/clone[aws]"]),
        (
            {"url": "https://a.test/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["sojourn[aws] @ git+https://a.test/b@abc"],
        ),
        (
            {"url": "file:///b/sojourn-1-py3-none-any.whl", "archive_info": {}},
            ["sojourn[aws] @ file://FOLDER/b/sojourn-1-py3-none-any.whl"],
        ),
        ({}, ["sojourn[aws]"]),
    ],
)
def test_pip_gets_the_place_that_the_installation_came_from(
    prefix: Path, source: object, words: list[str]
) -> None:
    if source:
        _from(prefix, source)
    words = [word.replace("FOLDER", str(prefix)) for word in words]
    (prefix / "packages/pip").mkdir()
    (prefix / "packages/pip/__init__.py").touch()
    assert shlex.split(install_command("aws")) == [
        *(str(prefix / "bin/python"), "-m", "pip", "install", *words)
    ]
    (prefix / "bin").mkdir()
    (prefix / "bin/pip").touch(mode=0o755)
    assert shlex.split(install_command("aws")) == ["pip", "install", *words]


def test_a_clone_that_is_not_installed_names_itself(prefix: Path) -> None:
    shutil.rmtree(prefix / "packages/sojourn-1.dist-info")
    assert install_command("aws").endswith(f" -e '{_ROOT}[aws]'")


@pytest.mark.slow
def test_what_is_printed_can_be_run(tmp_path: Path) -> None:
    """In an environment of its own, which finds the packages of this one in place of an index."""
    home = tmp_path / "a home"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin/python"
    where = "import site; print(site.getsitepackages()[0])"
    packages = _output([str(python), "-c", where])
    Path(packages, "beside.pth").write_text(f"{site.getsitepackages()[0]}\n")
    clone = _clone(tmp_path)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "false",  # the way in which pip reads it, this means no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    pip = [str(python), "-m", "pip", "install", "--quiet", "--ignore-installed", "--no-deps"]
    subprocess.run([*pip, str(clone)], env=environment, check=True)
    command = _output([str(python), "-c", _ASK], environment)
    assert command == f"pip install '{clone}[terraform]'"
    subprocess.run(command, shell=True, env=environment, check=True)


@pytest.fixture
def uv(tmp_path: Path) -> dict[str, str]:
    """An environment that has `uv`, with folders of its own for all that it writes."""
    program = os.environ.get("SOJOURN_TEST_UV") or shutil.which("uv")
    if not program:
        pytest.skip(
            "no uv: put it on PATH, or its path into SOJOURN_TEST_UV, such as that of "
            "`python3 -m venv V && V/bin/pip install uv`, V/bin/uv"
        )
    kept = {key: value for key, value in os.environ.items() if key not in _OF_THIS}
    return {
        **kept,
        "PATH": f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON": sys.executable,
    }


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("editable", [False, True])
def test_what_is_printed_for_a_tool_of_uv_can_be_run(
    tmp_path: Path, uv: dict[str, str], editable: bool
) -> None:
    """From an index; the same in the next test."""
    clone = _clone(tmp_path)
    option = ["--editable"] if editable else []
    subprocess.run(["uv", "tool", "install", "-q", *option, str(clone)], env=uv, check=True)
    python = str(tmp_path / "tools/sojourn/bin/python")
    command = _output([python, "-c", _ASK], uv)
    options = "--force --editable" if editable else "--force"
    assert command == f"uv tool install {options} '{clone}[terraform]'"
    _adds_the_extra(command, python, uv)
    assert _output([str(tmp_path / "bin/sojourn"), "--version"], uv)


@pytest.mark.slow
@pytest.mark.full
def test_what_is_printed_in_an_environment_of_uv_can_be_run(
    tmp_path: Path, uv: dict[str, str]
) -> None:
    clone, home = _clone(tmp_path), tmp_path / "a home"
    subprocess.run(["uv", "venv", "-q", str(home)], env=uv, check=True)
    python = str(home / "bin/python")
    install = ["uv", "pip", "install", "-q", "--python", python, str(clone)]
    subprocess.run(install, env=uv, check=True)
    command = _output([python, "-c", _ASK], uv)
    assert command == f"uv pip install --python '{python}' '{clone}[terraform]'"
    _adds_the_extra(command, python, uv)


def _adds_the_extra(command: str, python: str, environment: dict[str, str]) -> None:
    look = [python, "-c", "import grpc"]
    lacking = subprocess.run(look, env=environment, stderr=subprocess.DEVNULL, check=False)
    assert lacking.returncode == 1
    subprocess.run(f"{command} -q", shell=True, env=environment, check=True)
    subprocess.run(look, env=environment, check=True)


def _clone(folder: Path) -> Path:
    clone = folder / "a clone"
    shutil.copytree(_ROOT / "src", clone / "src")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_ROOT / name, clone / name)
    return clone


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def test_the_extra_all_has_every_other() -> None:
    text = (_ROOT / "pyproject.toml").read_text()
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    names = re.findall(r"^(\w+) = \[", extras, re.MULTILINE)
    assert f'all = ["sojourn[{",".join(sorted(set(names) - {"all"}))}]"]' in extras
