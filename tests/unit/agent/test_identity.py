"""Who reaches a machine's metadata service: in namespaces of the kernel, with its own firewall."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_TOOLS = ("ip", "iptables", "unshare")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(each) for each in _TOOLS),
    reason=f"needs root, and {', '.join(_TOOLS)}",
)

_JOB, _ITS_OWN, _OTHER = 1001, 100005, 1002
_ASKED = (("metadata", "169.254.169.254", 80), ("wire", "168.63.129.16", 80))
_NAMES = (("names", "169.254.169.254", 53), ("names of Azure", "168.63.129.16", 53))

# A machine whose metadata service is at the other end of one wire, and a container with a network
# of its own at the end of another.
_NETWORK = """
set -e
mount --bind "$folder/subuid" /etc/subuid
ip link set lo up
unshare --net sleep 60 >/dev/null 2>&1 & cloud=$!
unshare --net sleep 60 >/dev/null 2>&1 & container=$!
trap 'kill $cloud $container $served 2>/dev/null' EXIT
for each in $cloud $container; do
    until [ "$(readlink /proc/$each/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
        sleep 0.05
    done
done
in_cloud() { nsenter --net=/proc/$cloud/ns/net "$@"; }
in_container() { nsenter --net=/proc/$container/ns/net "$@"; }
ip link add c0 type veth peer name eth0 netns $cloud
ip link add d0 type veth peer name eth0 netns $container
ip address add 10.0.0.2/24 dev c0
ip address add 172.17.0.1/24 dev d0
ip link set c0 up
ip link set d0 up
in_cloud ip address add 10.0.0.1/24 dev eth0
in_cloud ip link set eth0 up
in_container ip address add 172.17.0.2/24 dev eth0
in_container ip link set eth0 up
in_container ip route add default via 172.17.0.1
in_cloud ip route add 172.17.0.0/24 via 10.0.0.2
for each in 169.254.169.254 168.63.129.16; do
    in_cloud ip address add $each/32 dev eth0
    ip route add $each via 10.0.0.1
done
echo 1 > /proc/sys/net/ipv4/ip_forward
nsenter --net=/proc/$cloud/ns/net "$python" "$folder/serve.py" "$folder/serves" \\
    >/dev/null 2>&1 & served=$!
until [ -e "$folder/serves" ]; do sleep 0.05; done
"$python" -c "$hide" || exit 3
for user in 0 $users; do
    "$python" "$folder/ask.py" "user $user" $user
done
in_container "$python" "$folder/ask.py" container 0
"""

_SERVE = """
import selectors, socket, sys
selector = selectors.DefaultSelector()
for port in (53, 80):
    listening = socket.create_server(("0.0.0.0", port))
    selector.register(listening, selectors.EVENT_READ)
open(sys.argv[1], "w").close()
while True:
    for key, _ in selector.select():
        key.fileobj.accept()[0].close()
"""

_ASK = f"""
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[2]))
for name, address, port in {(*_ASKED, *_NAMES)}:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        continue
    print(sys.argv[1], "reaches", name, flush=True)
"""


def reached(folder: Path, hide: str, path: str) -> set[str]:
    """Who reaches what, after the machine has done `hide`, with the programs of a search path."""
    (folder / "subuid").write_text(f"someone:200000:9\n{_JOB}:100000:65536\n")
    (folder / "serve.py").write_text(_SERVE)
    (folder / "ask.py").write_text(_ASK)
    given = {
        "folder": str(folder),
        "python": os.path.realpath(sys.executable),
        "hide": f"import os, sys; sys.path[:0] = {sys.path}; os.environ['PATH'] = {path!r}; {hide}",
        "users": f"{_JOB} {_ITS_OWN} {_OTHER}",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        ["unshare", "--net", "--mount", "bash", "-c", _NETWORK],
        env=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


_HIDE = (
    f"from sojourn.agent.identity import hide_from; why = hide_from({_JOB}); why and sys.exit(why)"
)
_ALL = {name for name, _, _ in (*_ASKED, *_NAMES)}


def _who(*names: object) -> set[str]:
    return {f"{who} reaches {what}" for who in names for what in _ALL}


def test_all_reach_it_if_nobody_prevents_it(tmp_path: Path) -> None:
    users = (f"user {each}" for each in (0, _JOB, _ITS_OWN, _OTHER))
    assert reached(tmp_path, "pass", os.environ["PATH"]) == _who(*users, "container")


@pytest.mark.parametrize("tools", ["iptables", "ip"])
def test_jobs_and_containers_reach_the_names_alone(tmp_path: Path, tools: str) -> None:
    """Also by the numbers that a user can take on in a rootless container. Names are resolved at
    the same addresses by some clouds."""
    path = os.environ["PATH"]
    if tools == "ip":
        path = str(tmp_path / "bin")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "ip").symlink_to(str(shutil.which("ip")))
    names = {f"{who} reaches {what}" for who in (f"user {_JOB}", f"user {_ITS_OWN}", "container")
             for what, _, _ in _NAMES}  # fmt: skip
    assert reached(tmp_path, _HIDE, path) == _who("user 0", f"user {_OTHER}") | names
