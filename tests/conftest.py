"""Settings of all tests."""

import gc
import os
import signal
from collections import defaultdict

import pytest
from amaranth import hdl

from gen.base.cache import tool_folders
from tests.costs import Costs

FIRST = 1
"""Cases of a test in `make test`: the last."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--costs``."""
    parser.addoption("--costs", metavar="FILE",
                     help="write the CPU seconds of each test to this file, as CSV")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C end processes that tests start: a shell that runs tests in the background disables
    it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Compiling Yosys takes a minute; tests with a cache of their own would repeat it.
    os.environ |= tool_folders()
    _keep_shapes()
    config.pluginmanager.register(Costs(config.getoption("costs")))


def _keep_shapes() -> None:
    """Let Amaranth compute the shape of an expression once.

    Amaranth computes it from the operands, down to the signals, each of the dozen times that the
    simulator's compiler asks, for each expression inside another. An expression never changes. This
    saves about a tenth of the CPU time of tests/rtl. An Amaranth whose class has no such method, or
    no room for the result, is left unchanged.
    """
    operator = getattr(getattr(hdl, "_ast", None), "Operator", None)
    worked_out = getattr(operator, "shape", None)
    if operator is None or worked_out is None or not getattr(operator, "__dictoffset__", 0):
        return

    def shape(self) -> hdl.Shape:
        known = self.__dict__.get("_known_shape")
        if known is None:
            known = self._known_shape = worked_out(self)
        return known

    operator.shape = shape


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Carry out the marks ``few(n, mark)``, and leave all except `FIRST` cases of each test to
    `make test-all`. Begin with the longest tests, which otherwise would run alone at the end."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        for marker in found[0].iter_markers("few"):
            _leave_few(found, *marker.args)
        if not any(found[0].iter_markers("every")):
            _leave_few([item for item in found if not (
                item.get_closest_marker("slow") or item.get_closest_marker("thorough"))],
                FIRST, "thorough")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _leave_few(cases: list[pytest.Item], count: int, mark: str = "slow") -> None:
    """Mark all cases except ``count``, spread over them; if it is 1, the last stays."""
    last = len(cases) - 1
    kept = {last - round(k * last / max(1, count - 1)) for k in range(count)}
    for number, item in enumerate(cases):
        if number not in kept:
            item.add_marker(mark)


def pytest_collection_finish() -> None:
    """Exempt objects that exist before the first test from garbage collection.

    Elaboration creates objects at a higher rate than the collector's thresholds assume.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
