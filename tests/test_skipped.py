"""The tests that a run skips are those that the next run is given, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

_CONFTEST = """\
from tests.skipped import Skipped


def pytest_addoption(parser):
    parser.addoption("--skipped")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: of the second run, too")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skipped(config.getoption("skipped")))
"""

_HEAD = """\
import pytest

pytest.importorskip("package_{number}")


def test_of_the_file():
    pass


@pytest.mark.slow
def test_slow():
    pass
"""

_SINGLE = """\
import os

import pytest

without = pytest.mark.skipif("PACKAGES" not in os.environ, reason="needs the tool")


@pytest.fixture
def package():
    return pytest.importorskip("package_1")


def test_plain():
    pass


@pytest.mark.parametrize("case", ["a b", "c::d", "@e", pytest.param("f", marks=without)])
def test_cases(case):
    pass


@without
def test_marked():
    pass


def test_of_a_fixture(package):
    pass


def test_inside():
    pytest.importorskip("package_2")


@pytest.mark.xfail
def test_that_fails_as_expected():
    raise AssertionError
"""


def _pytest(folder: Path, *arguments: str, packages: Path | None = None) -> str:
    environment = {"PYTHONPATH": f"{ROOT}:{packages}" if packages else str(ROOT),
                   "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | (
                       {"PACKAGES": "yes"} if packages else {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "not slow", "-rA", "-p", "xdist.plugin",
         "-p", "no:cacheprovider", *arguments], cwd=folder, env=environment, text=True,
        capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_the_next_run_has_the_skipped_tests_and_no_others(tmp_path, workers):
    folder, packages = tmp_path / "project", tmp_path / "packages"
    folder.mkdir(), packages.mkdir()
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_single.py").write_text(_SINGLE)
    for number in (1, 2):
        (folder / f"test_head_{number}.py").write_text(_HEAD.format(number=number))
        (packages / f"package_{number}.py").touch()
    first = _pytest(folder, *workers, "--skipped", "out/skipped.txt")
    assert "4 passed, 6 skipped" in first and "could not import 'package_1'" in first
    listed = (folder / "out/skipped.txt").read_text().splitlines()
    assert sorted(listed) == [
        "test_head_1.py", "test_head_2.py", "test_single.py::test_cases[f]",
        "test_single.py::test_inside", "test_single.py::test_marked",
        "test_single.py::test_of_a_fixture"]

    second = _pytest(folder, *workers, "--skipped", "out/again.txt", "@out/skipped.txt",
                     packages=packages)
    assert "6 passed" in second and " skipped" not in second
    assert "test_plain" not in second and "test_slow" not in second
    assert (folder / "out/again.txt").read_text() == ""
