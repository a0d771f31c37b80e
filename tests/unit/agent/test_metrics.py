"""What a runner program counts."""

from __future__ import annotations

from sojourn.agent.runner import metric_values

_TEXT = """\
# HELP jobs The current number of running builds
# TYPE jobs gauge
jobs{executor_stage="a}b",runner="x y"} 1
jobs{runner="z"} 2 1700000000
jobs_total{runner="z"} 7
jobs 4
"""


def test_all_values_of_one_metric_are_read() -> None:
    assert list(metric_values(_TEXT, "jobs")) == [1, 2, 4]
    assert list(metric_values(_TEXT, "builds")) == []
