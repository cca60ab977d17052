"""A list of the tests that a run skips, which another run of pytest reads as ``@FILE``."""

from pathlib import Path

import pytest

__all__ = ["Skipped"]


class Skipped:
    """Plugin of pytest that writes the skipped tests to a file, one a line.

    A file of tests that is skipped at its head is listed as a file.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._found: dict[str, None] = {}

    def pytest_sessionstart(self) -> None:
        """Remove the list of an earlier run."""
        self._path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; an expected failure is reported as skipped, too."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._found[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that is skipped at its head."""
        if report.skipped:
            self._found[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        """Write the list."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(f"{name}\n" for name in self._found), encoding="utf-8")
