"""The arguments and attributes of `iterative_cml_runner`, and the runner that they describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sojourn import forges
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.runner import Runner
from sojourn.core.task import Storage, Task
from sojourn.terraform.machinearguments import (
    EMPTY,
    KEY,
    OBSERVED,
    argument,
    arguments,
    fields_of,
    known,
    name_of,
    naming_arguments,
    problems_in,
    whole,
)
from sojourn.terraform.plugin.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema, Type
from sojourn.terraform.startupscript import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.runners import Settings
    from sojourn.runners.target import Target
    from sojourn.taskfiles.changes import Fields
    from sojourn.terraform.plugin.values import Object

__all__ = [
    "NO_SCRIPT",
    "RUNNER",
    "described",
    "launch_fields",
    "misnamed_arguments",
    "notes_on_runner",
    "settings_of",
    "startup_of",
    "token_of",
]

NO_SCRIPT = "#!/bin/bash"  # what the old provider took for none
_VOLUMES_OF = "gitlab"  # the driver whose runners have volumes


def _same_repo(one: Any, other: Any) -> bool:
    from sojourn.runners.target import address_of  # not free to load, and few have runners

    try:
        return bool(one) and bool(other) and address_of(one) == address_of(other)
    except InvalidInput:
        return False


def _same_labels(one: Any, other: Any) -> bool:
    return set(_split(one)) == set(_split(other))


def _split(labels: Any) -> tuple[str, ...]:
    return tuple(label.strip() for label in (known(labels, "") or Runner.labels[0]).split(","))


def _of_runners(own: bool) -> tuple[Attribute, ...]:
    """`own`: of the right resource, which finds what is not given, and has defaults."""
    found = {"computed": True} if own else {}
    default = {"default": ",".join(Runner.labels)} if own else {}
    return (
        argument(
            "repo",
            STRING,
            "Repository or group of repositories whose jobs it runs, as its address; found as "
            "`sojourn runner launch` does if not given.",
            same=_same_repo,
            **found,
        ),
        argument(
            "driver",
            STRING,
            f"Forge of the repository: {_drivers()}; found from the repository if not given.",
            **found,
        ),
        argument(
            "token",
            STRING,
            "Token that can register runners; default: `CML_TOKEN`, `REPO_TOKEN` or the forge's "
            "own variable, which is better: Terraform stores the argument in its state.",
            sensitive=True,
            replace=False,
            readable=False,
        ),
        argument(
            "labels",
            STRING,
            "Comma-separated labels.",
            same=_same_labels,
            **default,
        ),
        argument(
            "single",
            BOOL,
            "Whether it ends after one job; default: for public repositories.",
            readable=False,
        ),
        argument(
            "docker_volumes",
            Type("list", STRING),
            f"Volumes of the containers that jobs run in; only of `{_VOLUMES_OF}`.",
            readable=False,
        ),
        argument("cml_version", STRING, "No effect.", replace=False, readable=False),
    )


def _drivers() -> str:
    return ", ".join(f"`{name}`" for name in forges.DRIVERS)


def misnamed_arguments() -> tuple[Attribute, ...]:
    """The same for configurations that name the wrong resource."""
    own = _of_runners(own=False)
    return tuple(replace(each, description="As in `iterative_cml_runner`.") for each in own)


RUNNER = Schema(
    Block(
        (
            Attribute("id", STRING, "ID of the runner, `tpi-...`.", computed=True),
            *_of_runners(own=True),
            Attribute(
                "token_wo",
                STRING,
                "The same as `token`, kept nowhere; with Terraform 1.11 and later.",
                optional=True,
                sensitive=True,
                write_only=True,
                readable=False,
            ),
            argument(
                "token_on_machine",
                BOOL,
                "Whether the machine can use the token, to unregister itself and to re-run lost "
                "jobs; default: if the token can do little else, and jobs cannot read it.",
                readable=False,
            ),
            argument(
                "docker",
                BOOL,
                "Whether jobs can use the machine's Docker, with which they can become root there.",
                readable=False,
            ),
            argument(
                "ca_file",
                STRING,
                "Certificates of a forge with a private CA, as PEM or as the path of a file; the "
                "machine and its jobs trust them, too.",
                readable=False,
            ),
            argument(
                "upload_program",
                BOOL,
                "Whether to upload the runner program from this computer, for machines that cannot "
                "download it.",
                readable=False,
            ),
            argument(
                "idle_timeout",
                NUMBER,
                "Seconds without a job after which it ends; `0` or less: no limit.",
                default=Runner.idle_timeout,
            ),
            argument("timeout", NUMBER, "Seconds after which it ends; `0`: no limit.", default=0),
            argument(
                "startup_script",
                STRING,
                "Script to run on the machine first, also after it was lost: in base64, or with a "
                "shebang.",
                default="",
                sensitive=True,
                readable=False,
            ),
            *arguments("Name of the runner at its forge, which becomes part of its `id`."),
            KEY,
            *OBSERVED,
            Attribute("state", STRING, "State of the machine.", computed=True),
        ),
        (),
        "Launches a CI runner, which ends after some time without a job. One that has ended is "
        "removed by the next refresh.",
    ),
    version=1,
    timeouts={"create": 1200.0, "read": 180.0, "update": 180.0, "delete": 1200.0},
)


def notes_on_runner(values: Object) -> Iterator[str]:
    """What there is to say of arguments that are not what they were."""
    if values["cml_version"] not in EMPTY:
        yield "cml_version has no effect: Sojourn launches the forge's own runner program"


def described(values: Object) -> Task:
    """What a runner is, as far as that is known before it is launched; for checks and comparison.

    Raises InvalidInput, which names arguments as this resource does. What is not known yet is taken
    for something valid.
    """
    from sojourn.taskfiles.changes import changed  # as above

    found = [*_problems(values), *problems_in(values)]
    with naming_arguments(*found):
        runner = Runner(
            known(values["driver"], ""),
            known(values["repo"], ""),
            name_of(values),
            "",
            _split(values["labels"]),
            bool(known(values["single"], False)),
            _idle(values),
        )
        script = startup_of(values) or NO_SCRIPT
        if any(problem.path == "startup_script" for problem in found):
            script = NO_SCRIPT  # what is wrong with it is said already
        plain = Task(script, runner=runner, timeout=0, storage=Storage(output=""))
        return changed(plain, launch_fields(values))


def launch_fields(values: Object) -> Fields:
    """Those of its task."""
    fields = fields_of(values)
    fields["timeout"] = whole(known(values["timeout"], 0))
    return fields  # type: ignore[return-value]


def settings_of(values: Object, target: Target) -> Settings:
    """The rest. `target`: whose runner it is, as given or found."""
    from sojourn.runners import Settings  # as above

    with naming_arguments(*_volume_problems(values, target.driver)):
        volumes = known(values["docker_volumes"], None)
        more: dict[str, Any] = {"docker_volumes": tuple(volumes)} if volumes else {}
    return Settings(
        target.driver,
        target.repo,
        target.token,
        name_of(values),
        _split(values["labels"]),
        _idle(values),
        known(values["single"], None),
        startup_script=startup_of(values),
        token_on_machine=known(values.get("token_on_machine"), None),
        docker=bool(known(values.get("docker"), None)),
        ca_file=known(values.get("ca_file"), None) or "",
        upload_program=bool(known(values.get("upload_program"), None)),
        **more,
    )


def token_of(values: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The token that is given; empty: it has to be found."""
    return str(known(config.get("token_wo"), "") or known(values["token"], ""))


def startup_of(values: Object) -> str:
    """The script to run first; empty: none.

    The old provider had it in base64, without a need for a shebang: it was a part of its own.
    """
    text = str(known(values["startup_script"], ""))
    if text.strip() in ("", NO_SCRIPT):
        return ""
    plain = None if text.startswith("#!") else decoded(text)
    if plain is None:
        return text
    return plain if plain.startswith("#!") else f"{NO_SCRIPT}\n{plain}"


def _idle(values: Object) -> int:
    return max(0, int(known(values["idle_timeout"], Runner.idle_timeout)))


def _problems(values: Object) -> Iterator[Problem]:
    yield from _target_problems(values)
    if not all(_split(values["labels"])):
        yield Problem("labels", "must be a comma-separated list such as 'cml,gpu'")
    if known(values.get("token_wo"), "") and known(values["token"], ""):
        yield Problem("token_wo", "cannot be combined with token")
    seconds = known(values["idle_timeout"], 0)
    if seconds != int(seconds):
        yield Problem("idle_timeout", f"must be a whole number of seconds, got {seconds}")
    yield from _volume_problems(values, known(values["driver"], _VOLUMES_OF))


def _volume_problems(values: Object, driver: str) -> Iterator[Problem]:
    if known(values["docker_volumes"], None) and driver != _VOLUMES_OF:
        yield Problem("docker_volumes", f"has no effect with driver = {driver!r}")


def _target_problems(values: Object) -> Iterator[Problem]:
    from sojourn.runners.target import address_of  # as above

    for name, check in (("driver", forges.module_of), ("repo", address_of)):
        given = known(values[name], "")
        if not given:
            continue
        try:
            check(given)
        except InvalidInput as error:
            yield from error.problems
