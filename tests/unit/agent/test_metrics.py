"""What a runner program counts."""

from __future__ import annotations

from sojourn.agent.metrics import free_port, metric, values

_TEXT = """\
# HELP jobs The current number of running builds
# TYPE jobs gauge
jobs{executor_stage="a}b",runner="x y"} 1
jobs{runner="z"} 2 1700000000
jobs_total{runner="z"} 7
jobs 4
"""


def test_all_values_of_one_metric_are_read() -> None:
    assert list(values(_TEXT, "jobs")) == [1, 2, 4]
    assert list(values(_TEXT, "builds")) == []


def test_no_connection_takes_the_port_before_the_program_listens() -> None:
    connections_from = 32_768  # on Linux; elsewhere later
    assert free_port() < connections_from


def test_a_program_that_does_not_answer_has_none() -> None:
    assert metric(free_port(), "jobs") is None
