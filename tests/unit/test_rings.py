"""No ring of imports, also not by imports in functions: each module can be read before the next."""

from __future__ import annotations

import graphlib

import grimp
import pytest


def _order(graph: grimp.ImportGraph) -> list[str]:
    imports = {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
        if module.startswith("sojourn")
    }
    return list(graphlib.TopologicalSorter(imports).static_order())


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("sojourn", exclude_type_checking_imports=True, cache_dir=None)


def test_imports_have_an_order(graph: grimp.ImportGraph) -> None:
    order = _order(graph)
    assert order.index("sojourn.core.errors") < order.index("sojourn.cli.app")


def test_a_ring_is_found(graph: grimp.ImportGraph) -> None:
    graph.add_import(importer="sojourn.core.errors", imported="sojourn.cli.app")
    with pytest.raises(graphlib.CycleError):
        _order(graph)
