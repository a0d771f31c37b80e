"""Defaults of settings files beneath what a command line and a task file say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn import clouds
from sojourn.core.errors import InvalidInput, Problem
from sojourn.taskfiles.changes import changed

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from sojourn.core.task import Task
    from sojourn.taskfiles import TaskFile
    from sojourn.taskfiles.defaults import Default

__all__ = ["Defaults"]


@dataclass(frozen=True)
class Defaults:
    """Those for one command, by the names of arguments."""

    by_name: Mapping[str, Default]

    def workdir(self, given: Mapping[str, Any]) -> str:
        """The workdir of what options give."""
        default = self.by_name.get("workdir")
        found: str = given.get("workdir", default.value if default else "")
        return found

    def beneath(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What options give, and what defaults do where they give nothing."""
        values = {**self._values((), given), **given}
        if "environment" in given and "environment" in self.by_name:
            values["environment"] = {**self.by_name["environment"].value, **given["environment"]}
        return values

    def fill(self, found: TaskFile, given: Mapping[str, Any]) -> Task:
        """A task of a file, with defaults where the file says nothing, and options on top."""
        said = {"cloud": found.task.cloud} if "cloud" in found.said else {}
        values = self._values(found.said - {"environment"}, {**said, **given})
        if "environment" in values:
            values["environment"] = {**values["environment"], **found.task.environment}
        try:
            return changed(found.task, {**values, **self._on(values, given)})
        except InvalidInput as error:
            raise self._located(error, given) from error

    def _on(self, values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        both = {name: value for name, value in given.items() if name in values}
        added = {
            name: {**values[name], **value}
            for name, value in both.items()
            if name in ("environment", "mpi") and isinstance(value, dict)
        }
        return {**given, **added}

    def _values(self, said: Container[str], given: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: each.value for name, each in self.by_name.items() if name not in said}
        region = self.by_name.get("region")
        cloud = given.get("cloud") or values.get("cloud")
        if region and cloud and not region.profile and clouds.has_region(cloud):
            values.pop("region", None)  # the cloud's own is meant more closely
        return values

    def _located(self, error: InvalidInput, given: Mapping[str, Any]) -> InvalidInput:
        """What a default made wrong is told with the line that it stands on."""
        problems = [self._traced(each, given) for each in error.problems]
        found = InvalidInput.of(problems)
        found.hint = error.hint
        return found

    def _traced(self, problem: Problem, given: Mapping[str, Any]) -> Problem:
        name = problem.path.removeprefix("storage.").partition(".")[0]
        default = self.by_name.get(name)
        if default is None or name in given:
            return problem
        return replace(problem, path=f"{default.origin}: {problem.path}")
