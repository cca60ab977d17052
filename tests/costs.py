"""Processor time of each test: a table of the most expensive tests, and a file of all."""

import csv
import os
from collections.abc import Generator
from pathlib import Path

import pytest

__all__ = ["Costs", "cpu_seconds"]

SHOWN = 10
"""Tests in the table."""


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished child processes."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Costs:
    """Plugin of pytest that measures the CPU seconds of tests, set-up included.

    A shared fixture, and a shared compiled NIC, count for the first test that uses it.

    Parameters
    ----------
    path: CSV file for all tests, most expensive first. None for no file.
    """

    def __init__(self, path: str | None) -> None:
        self._path = Path(path).absolute() if path else None
        self._began = 0.0
        self._found: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Note the time before a test's set-up."""
        self._began = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
            self, item: pytest.Item, call: pytest.CallInfo) -> Generator[None, object, object]:
        """Send the time of a test with the report of its end, from a worker too."""
        if call.when == "teardown":
            item.user_properties.append(("cpu_seconds", cpu_seconds() - self._began))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the time of a test."""
        for name, seconds in report.user_properties:
            if name == "cpu_seconds" and isinstance(seconds, float):
                self._found[report.nodeid] = seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table and write the file."""
        found = sorted(self._found.items(), key=lambda each: -each[1])
        if not found:
            return
        terminalreporter.section(f"{sum(self._found.values()):,.0f} CPU seconds, and the "
                                 f"{min(SHOWN, len(found))} most expensive tests")
        for test, seconds in found[:SHOWN]:
            terminalreporter.write_line(f"{seconds:8.1f}  {test}")
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("cpu_seconds", "test"), *(
                    (f"{seconds:.3f}", test) for test, seconds in found)])
