"""Images made once, with machines: they have what the script installed, and nothing of its task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import images
from sojourn.core.errors import Conflict, InvalidInput, NotFound, TaskFailed
from tests.contract.clouds.lab import Lab
from tests.simcloud.vm.sides import Side, sides

pytestmark = pytest.mark.slow

SCRIPT = """#!/bin/sh
set -e
echo installing
mkdir -p /usr/local/bin /etc/tools
printf '#!/bin/sh\\necho the tool\\n' >/usr/local/bin/tool
chmod 755 /usr/local/bin/tool
cp data /etc/tools/data
echo "$SECRET" >hidden
"""


@pytest.fixture
def lab(side: Side, tmp_path: Path) -> Lab:
    (tmp_path / "workdir").mkdir()
    (tmp_path / "workdir" / "data").write_text("of the workdir")
    return Lab(side.kit, tmp_path / "workdir")


def make(lab: Lab, script: str = SCRIPT, name: str = "tools", **more: Any) -> sojourn.MadeImage:
    given: dict[str, Any] = {
        "cloud": lab.kit.cloud,
        "workdir": lab.workdir,
        "environment": {"SECRET": "s3cr3t-value"},
        **more,
    }
    return images.make(name, script, on_event=lab.events.append, **given)


@sides("aws", "az", full=("gcp",))
def test_a_task_finds_what_the_script_installed(side: Side, lab: Lab) -> None:
    made = make(lab)
    assert (made.name, made.base, made.ready) == ("tools", "ubuntu", True)
    assert [(cloud, image.name) for cloud, image in images.list()] == [(lab.kit.cloud, "tools")]
    printed = [each.text for each in lab.events if isinstance(each, sojourn.LogLine)]
    assert printed == ["installing"]
    assert sojourn.list_tasks() == []
    lab.run("mkdir output; (tool; cat /etc/tools/data) >output/said", image="sojourn:tools")
    assert lab.output() == {"said": "the tool\nof the workdir"}
    with pytest.raises(Conflict, match="already exists"):
        make(lab)
    images.delete("tools", cloud=lab.kit.cloud)
    assert images.list() == []
    with pytest.raises(NotFound):
        images.delete("tools", cloud=lab.kit.cloud)
    with pytest.raises(InvalidInput, match="sojourn image make tools"):
        lab.create("true", image="sojourn:tools")


@sides("aws", "az", full=("gcp",))
def test_nothing_of_the_task_is_in_the_image(side: Side, lab: Lab) -> None:
    make(lab)
    [disk] = side.kit.host.disks
    written = [path for path in disk.rglob("*") if path.is_file() and not path.is_symlink()]
    assert written
    contents = {path: path.read_bytes() for path in written}
    for word in (b"s3cr3t-value", b"tpi-image-tools", *map(str.encode, side.secrets())):
        assert [path for path, text in contents.items() if word in text] == []
    named = [str(path.relative_to(disk)) for path in disk.rglob("*")]
    assert [name for name in named if "sojourn" in name or "ssh_host" in name] == []
    assert [text for path, text in contents.items() if path.name == "authorized_keys"] == [b""]
    assert [name for name in named if "waagent/" in name] == []
    assert (disk / "root/etc/machine-id").read_bytes() == b""
    images.delete("tools", cloud=lab.kit.cloud)


@sides("az", full=("aws", "gcp"))
def test_a_machine_boots_from_an_image_made_of_an_image(side: Side, lab: Lab) -> None:
    make(lab)
    make(lab, "#!/bin/sh\ntool >/etc/more\n", "more", image="sojourn:tools")
    with sojourn.Machine.create(cloud=lab.kit.cloud, image="sojourn:more", output="") as machine:
        assert machine.exec("cat /etc/more").stdout == b"the tool\n"
    for name in ("tools", "more"):
        images.delete(name, cloud=lab.kit.cloud)


@sides("aws", full=("az", "gcp"))
def test_a_script_that_fails_leaves_nothing(side: Side, lab: Lab) -> None:
    with pytest.raises(TaskFailed, match=r"(?s)exit code 3.*out of luck") as caught:
        make(lab, "#!/bin/sh\necho out of luck >&2\nexit 3\n")
    assert caught.value.exit == 3
    assert lab.kit.leaks() == []
