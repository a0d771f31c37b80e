"""The wheels that travel with the agent: which they are, where they come from, who checks them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sojourn.agent import indexes, wheels
from sojourn.agent.indexes import sources
from sojourn.agent.wheels import Wheel, fetch
from sojourn.clouds.vm.on_machine import boot
from sojourn.core.errors import IntegrityError, InvalidInput, Transient
from tests.simcloud.wheellock import NEEDED, pins

_ROOT = Path(__file__).parents[3]
_FILE = "obstore-1.0-py3-none-any.whl"


def _zip(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("obstore/__init__.py", text)
    return buffer.getvalue()


_CONTENT = _zip("right = True\n")
_WHEEL = Wheel(_FILE, hashlib.sha256(_CONTENT).hexdigest())


class _Index:
    """An index, and the host that has its files: who asked for what, and with which password."""

    def __init__(self, html: bool) -> None:
        self.html = html
        self.content = _CONTENT
        self.asked: list[tuple[str, str]] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append((self.path, self.headers.get("Authorization", "")))
                body, kind = index.answer(self.path)
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.host, self.files = (f"127.0.0.1:{server.server_port}" for server in self._servers)

    def answer(self, path: str) -> tuple[bytes, str]:
        if path.startswith("/files/"):
            return self.content, "application/octet-stream"
        if path != "/simple/obstore/":
            return b"", "text/plain"
        link = f"http://{self.files}/files/{_FILE}"
        if self.html:
            return f'<a href="{link}#sha256=any">{_FILE}</a>'.encode(), "text/html"
        listed = {"files": [{"filename": _FILE, "url": link, "hashes": {}}]}
        return json.dumps(listed).encode(), "application/vnd.pypi.simple.v1+json"

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture(params=["json", "html"])
def index(request: pytest.FixtureRequest) -> Iterator[_Index]:
    made = _Index(html=request.param == "html")
    yield made
    made.close()


def _told(index: _Index, user: str = "") -> dict[str, str]:
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"http://{user}{index.host}/simple/"}


def test_what_was_fetched_is_kept_by_its_hash(index: _Index, tmp_path: Path) -> None:
    [path] = fetch([_WHEEL], tmp_path, _told(index))
    assert path == tmp_path / _WHEEL.sha256 / _FILE
    assert path.read_bytes() == _CONTENT
    assert fetch([_WHEEL], tmp_path, _told(index)) == [path]
    assert len(index.asked) == 2  # the page and the file, once


def test_what_was_damaged_in_the_cache_is_fetched_again(index: _Index, tmp_path: Path) -> None:
    [path] = fetch([_WHEEL], tmp_path, _told(index))
    path.write_bytes(_zip("right = False\n"))
    [path] = fetch([_WHEEL], tmp_path, _told(index))
    assert path.read_bytes() == _CONTENT


def test_an_index_with_another_file_of_that_name_is_refused(index: _Index, tmp_path: Path) -> None:
    index.content = _zip("right = False\n")
    with pytest.raises(IntegrityError, match=f"has a different {_FILE}: expected SHA-256"):
        fetch([_WHEEL], tmp_path, _told(index))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_index_without_it_is_named(index: _Index, tmp_path: Path) -> None:
    other = Wheel("obstore-2.0-py3-none-any.whl", _WHEEL.sha256)
    with pytest.raises(Transient, match=r"/simple does not have obstore-2\.0-"):
        fetch([other], tmp_path, _told(index))


def test_a_password_goes_to_its_index_alone(index: _Index, tmp_path: Path) -> None:
    fetch([_WHEEL], tmp_path, _told(index, "me:pass%21word@"))
    login = "Basic " + b64encode(b"me:pass!word").decode()
    assert index.asked == [("/simple/obstore/", login), (f"/files/{_FILE}", "")]
    with pytest.raises(Transient) as caught:
        fetch([Wheel("other-1.whl", "")], tmp_path, _told(index, "me:pass%21word@"))
    assert "pass" not in str(caught.value)


def test_a_folder_of_wheels_is_enough(tmp_path: Path) -> None:
    told = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    with pytest.raises(Transient, match="no package index is configured"):
        fetch([_WHEEL], tmp_path / "cache", told)
    (tmp_path / _FILE).write_bytes(_CONTENT)
    [path] = fetch([_WHEEL], tmp_path / "cache", told)
    assert path.read_bytes() == _CONTENT


def test_an_installation_without_pip_makes_a_bundle(index: _Index, tmp_path: Path) -> None:
    """As by uv: no module of that name, and no program either."""
    lock = json.dumps({"x86_64-312": {_FILE: _WHEEL.sha256}})
    program = f"""\
import json, sys
sys.modules["pip"] = None
from sojourn.agent import bundle, wheels
wheels._lock = lambda: json.loads({lock!r})
sys.stdout.buffer.write(bundle.bundle("312", "x86_64"))
"""
    environment = {**_told(index), "PATH": "/nonexistent", "XDG_CACHE_HOME": str(tmp_path)}
    made = subprocess.check_output([sys.executable, "-c", program], env=environment)
    with zipfile.ZipFile(io.BytesIO(made)) as opened:
        assert opened.read(f"wheels/{_FILE}") == _CONTENT


def test_every_wheel_is_one_that_this_computer_would_install() -> None:
    pinned = pins((_ROOT / "requirements" / "run.txt").read_text())
    for place, files in wheels._lock().items():
        assert {file.partition("-")[0] for file in files} == {*NEEDED}, place
        for file, sha256 in files.items():
            name, version, *_ = file.split("-")
            assert sha256 in pinned[name, version, place.endswith("-310")], file


def test_all_pythons_are_there_on_both_architectures() -> None:
    assert {"310", "311", "312", "313", "314"} <= {*wheels.pythons()}
    for python in wheels.pythons():
        for architecture in ("aarch64", "x86_64"):
            assert wheels.locked(python, architecture)
    with pytest.raises(InvalidInput, match=r"Python 3\.9 on x86_64 is not supported"):
        wheels.locked("39", "x86_64")


def test_a_machine_unpacks_no_wheel_that_it_was_not_told_of(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr(f"wheels/{_FILE}", _CONTENT)
    boot._unpack(buffer.getvalue(), tmp_path / "right", [_WHEEL.sha256])
    assert (tmp_path / "right" / "obstore" / "__init__.py").exists()
    with pytest.raises(SystemExit, match=f"{_FILE} in the store is not what was uploaded"):
        boot._unpack(buffer.getvalue(), tmp_path / "wrong", ["0" * 64])
    assert not (tmp_path / "wrong" / "obstore").exists()


@pytest.mark.parametrize(
    ("told", "indexes"),
    [
        ({"PIP_INDEX_URL": "https://a/simple/"}, ["https://a/simple"]),
        ({"PIP_INDEX_URL": "https://a", "UV_INDEX_URL": "https://b"}, ["https://b"]),
        ({"UV_INDEX_URL": "https://b", "UV_DEFAULT_INDEX": "own=https://c"}, ["https://c"]),
        (
            {"PIP_INDEX_URL": "https://a", "PIP_EXTRA_INDEX_URL": "https://d https://a"},
            ["https://a", "https://d"],
        ),
        ({"PIP_INDEX_URL": "https://a", "PIP_NO_INDEX": "1"}, []),
    ],
)
def test_the_index_is_that_of_pip_and_uv(told: dict[str, str], indexes: list[str]) -> None:
    assert [*sources({"PIP_CONFIG_FILE": os.devnull, **told}).indexes] == indexes


def test_the_file_of_pip_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://e/simple\ncert = /ca.pem\nproxy = http://p:1\n")
    told = sources({"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path)})
    assert (told.indexes, told.certificates, told.proxy) == (
        ("https://e/simple",),
        "/ca.pem",
        "http://p:1",
    )
    assert sources({"PIP_CONFIG_FILE": str(file), "PIP_CERT": "/x"}).certificates == "/x"


def test_without_a_setting_it_is_the_index_of_pip_itself(tmp_path: Path) -> None:
    [index] = sources({"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}).indexes
    assert index.startswith("https://")
    assert index.endswith("/simple")


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither pip nor the copy that Python itself has; no wheels of the system, and no uv."""
    monkeypatch.setattr(indexes, "find_spec", lambda name: None)
    monkeypatch.setattr(indexes, "get_config_var", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.mark.usefixtures("no_pip")
def test_debian_keeps_the_copy_of_pip_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'PyPI = PackageIndex(\n    "https://index.example/", file_storage_domain="x"\n)\n'
    with zipfile.ZipFile(tmp_path / "pip-23.0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pip/_internal/models/index.py", said)
    assert _without_settings(tmp_path) == []
    monkeypatch.setattr(indexes, "get_config_var", {"WHEEL_PKG_DIR": str(tmp_path)}.get)
    assert _without_settings(tmp_path) == ["https://index.example/simple"]


@pytest.mark.usefixtures("no_pip")
def test_without_any_pip_it_is_the_index_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "uv"
    program.write_bytes(b"\x7fELF\0\xff" * 5000 + b"https://index.example/simplehttps://x\0")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _without_settings(tmp_path) == ["https://index.example/simple"]


def _without_settings(home: Path) -> list[str]:
    return [*sources({"HOME": str(home), "PIP_CONFIG_FILE": os.devnull}).indexes]
