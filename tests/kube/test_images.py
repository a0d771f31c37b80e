"""Any image: it needs a shell, and nothing of ours."""

from __future__ import annotations

import pytest

import sojourn
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube import images

_READ_ONLY = """\
spec:
  containers:
    - name: script
      securityContext: {readOnlyRootFilesystem: true}
"""


def _told(result: sojourn.Result, lab: Lab) -> str:
    return f"{result}; {lab.events}"


@pytest.mark.parametrize(
    "image", [images.SHELL, images.SHELL_AS_USER, images.WITH_ENTRYPOINT, images.PYTHON_AS_USER]
)
def test_an_image_without_python_or_root_or_with_an_entry_point(lab: Lab, image: str) -> None:
    (lab.workdir / "data").write_text("mine")
    (lab.workdir / "data").chmod(0o600)
    result = lab.run(
        "#!/bin/sh\nmkdir output; cat data > output/x; echo more >> data; cat data", image=image
    )
    assert result.status is sojourn.State.SUCCEEDED, _told(result, lab)
    assert lab.output() == {"x": "mine"}


def test_a_read_only_root_file_system(lab: Lab) -> None:
    script = "#!/bin/sh\nmkdir output; echo x > output/x; echo y > /here && exit 9; exit 0"
    result = lab.run(script, image=images.SHELL, options={"pod": _READ_ONLY})
    assert (result.status, result.exit_code) == (sojourn.State.SUCCEEDED, 0), _told(result, lab)
    assert lab.output() == {"x": "x\n"}


def test_the_script_has_the_images_user_path_and_environment(lab: Lab) -> None:
    script = '#!/bin/sh\nmkdir output; echo "$(id -u)" > output/user; echo "$FOO" > output/foo'
    result = lab.run(script, image=images.SHELL_AS_USER, environment={"FOO": 'it\'s\n"here"'})
    assert result.status is sojourn.State.SUCCEEDED, _told(result, lab)
    assert lab.output() == {"user": "1000\n", "foo": 'it\'s\n"here"\n'}


def test_an_interpreter_that_is_not_in_the_image(lab: Lab) -> None:
    result = lab.run("#!/usr/bin/python3\nprint(1)", image=images.SHELL)
    assert (result.status, result.exit_code) == (sojourn.State.FAILED, 127), _told(result, lab)


def test_out_of_memory_is_told(lab: Lab) -> None:
    script = "#!/bin/sh\ntail /dev/zero\n"
    handle = lab.create(script, machine="1-100", image=images.SHELL)
    result = handle.wait()
    status = handle.status()
    handle.delete()
    assert result.status is sojourn.State.FAILED, status
    assert "memory" in status.reason


def test_a_script_cannot_reach_the_store_the_secret_or_the_api(lab: Lab) -> None:
    script = """#!/bin/sh
mkdir output
ls -d /opt/sojourn /var/run/secrets/kubernetes.io 2>&1 | sort > output/seen
env | sort > output/environment
"""
    result = lab.run(script, image=images.SHELL, environment={"KEY": "value"})
    assert result.status is sojourn.State.SUCCEEDED, _told(result, lab)
    found = lab.output()
    assert "/opt/sojourn: No such file" in found["seen"].replace("'", "")
    assert "kubernetes.io: No such file" in found["seen"].replace("'", "")
    assert "SOJOURN_BOOT" not in found["environment"]


def test_pods_fit_a_restricted_namespace(lab: Lab, kit: KubernetesKit) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    kit.api.merge("Namespace", kit.api.namespace, {"metadata": {"labels": level}})
    (lab.workdir / "data").write_text("mine")
    result = lab.run("#!/bin/sh\nmkdir output; id -u > output/x; cat data", image=images.SHELL)
    assert result.status is sojourn.State.SUCCEEDED, _told(result, lab)
    assert lab.output() == {"x": "65532\n"}
