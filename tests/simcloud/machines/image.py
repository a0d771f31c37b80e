"""What all machines of a host are made from: a small tree, and a layer over the host's /usr.

Only what is named here is taken from the host, so that nothing else can be seen in a machine: not
the sources, nor homes, caches and secrets. What differs between machines does not belong here.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from tests.simcloud.machines import python, units

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_FOLDERS = {
    "boot": 0o755,
    "dev": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "media": 0o755,
    "mnt": 0o755,
    "opt": 0o755,
    "proc": 0o755,
    "root": 0o700,
    "run": 0o755,
    "srv": 0o755,
    "sys": 0o755,
    "tmp": 0o1777,
    "usr": 0o755,
    "var/cache": 0o755,
    "var/lib": 0o755,
    "var/log": 0o755,
    "var/spool": 0o755,
    "var/tmp": 0o1777,
}
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FROM_ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "dbus-1",
    "debian_version", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "login.defs", "lsb-release", "mime.types", "os-release", "pam.conf", "pam.d",
    "profile", "protocols", "python3", "security", "services", "shells", "skel",
    "ssl/certs/ca-certificates.crt", "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_ENGINES = ("bin/docker", "bin/podman")  # a machine has none but its own, see `containers`
_OF_LOCAL = ("bin", "etc", "games", "include", "lib", "sbin", "share", "src")
_FIRST_PERSON = 1000
_NOBODY = 65534


def build(folder: Path, interpreter: python.Interpreter) -> None:
    """Make the trees `root` and `usr` in the folder."""
    folder.mkdir()
    _build_root(folder / "root")
    _build_usr(folder / "usr")
    if interpreter.home:
        make_folder(folder / "root", python.HOME.strip("/"))
        make_link(folder / "usr", "bin/python3", interpreter.executable)
    if interpreter.library:
        library = f"{python.HOME}/lib/{interpreter.library}"
        make_link(folder / "usr", f"{python.libraries()}/{interpreter.library}", library)


def put(tree: Path, path: str, content: bytes, mode: int = 0o644) -> None:
    """Write a file, whatever the umask is."""
    target = tree / path
    make_folder(tree, os.path.dirname(path))
    target.write_bytes(content)
    target.chmod(mode)


def make_folder(tree: Path, path: str, mode: int = 0o755) -> None:
    """Make a folder and those above it, whatever the umask is."""
    folder = tree
    for part in ("", *Path(path).parts):
        folder /= part
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(0o755)
    if path:
        folder.chmod(mode)


def make_link(tree: Path, path: str, target: str) -> None:
    make_folder(tree, os.path.dirname(path))
    (tree / path).symlink_to(target)


def _build_root(tree: Path) -> None:
    for path, mode in _FOLDERS.items():
        make_folder(tree, path, mode)
    for name in _MERGED:
        if os.path.islink(f"/{name}"):
            make_link(tree, name, os.readlink(f"/{name}"))
    make_link(tree, "var/run", "/run")
    make_link(tree, "var/lock", "/run/lock")
    for name in (*_FROM_ETC, *python.settings()):
        _copy(tree, f"etc/{name}")
    for name, kept in (("passwd", _of_system), ("group", _of_system), ("shadow", None)):
        put(tree, f"etc/{name}", _accounts(name, kept), 0o640 if kept is None else 0o644)
    put(
        tree, "etc/nsswitch.conf", b"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
    )
    put(tree, "etc/environment", f'PATH="{PATH}"\n'.encode())
    put(tree, "etc/resolv.conf", b"")
    put(tree, "etc/fstab", b"")
    make_link(tree, "etc/mtab", "../proc/self/mounts")
    make_link(tree, "etc/ssl/cert.pem", str(AUTHORITIES))
    for path, text in units.FILES.items():
        put(tree, path, text.encode())
    for path, target in units.LINKS.items():
        make_link(tree, path, target)


def _build_usr(tree: Path) -> None:
    hidden = ["src", *units.SILENCED]
    for pattern in hidden:
        for path in Path("/usr").glob(pattern):
            _hide(tree, str(path.relative_to("/usr")))
    _hide(tree, "local")
    for name in _OF_LOCAL:
        make_folder(tree, f"local/{name}")
    for program in _ENGINES:
        if os.path.lexists(f"/usr/{program}"):
            make_folder(tree, os.path.dirname(program))
            os.mknod(tree / program, stat.S_IFCHR)  # overlays take this for a file that is gone
    # OpenSSL looks here; without it, it would need a link with a hashed name for each authority.
    if not os.path.lexists("/usr/lib/ssl/cert.pem"):
        make_link(tree, "lib/ssl/cert.pem", str(AUTHORITIES))


def _hide(tree: Path, path: str) -> None:
    """Make the folder one that has nothing of the layer below in it."""
    make_folder(tree, path)
    os.setxattr(tree / path, "trusted.overlay.opaque", b"y")


def _copy(tree: Path, path: str) -> None:
    source = Path("/", path)
    make_folder(tree, os.path.dirname(path))
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, tree / path, symlinks=True, copy_function=_copy_file)
    elif os.path.lexists(source):
        _copy_file(source, tree / path)


def _copy_file(source: str | Path, target: str | Path) -> None:
    shutil.copy2(source, target, follow_symlinks=False)


def _of_system(line: str) -> bool:
    number = int(line.split(":")[2])
    return number < _FIRST_PERSON or number == _NOBODY


def _accounts(name: str, kept: Callable[[str], bool] | None) -> bytes:
    """The accounts of the system without those of people; nobody has a password."""
    if kept is None:
        names = [
            line.split(":")[0] for line in _accounts("passwd", _of_system).decode().splitlines()
        ]
        return "".join(f"{each}:*:19000:0:99999:7:::\n" for each in names).encode()
    lines = Path("/etc", name).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.count(":") > 2 and kept(line)).encode()
