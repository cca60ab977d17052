"""The command ``embernic`` runs the command lines of the packages."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import typer

from embernic import PROGRAMS, SIMULATOR
from sim.cli.main import app

_ROOT = Path(__file__).parents[1]


def _run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "embernic", *arguments], cwd=_ROOT, text=True,
                          capture_output=True)


def test_the_wheel_installs_it():
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    module, _, function = project["project"]["scripts"]["embernic"].partition(":")
    assert callable(getattr(import_module(module), function))
    assert module in project["tool"]["setuptools"]["py-modules"]


def test_it_has_every_command_of_the_simulator():
    assert set(SIMULATOR) == set(typer.main.get_command(app).commands)  # type: ignore


def test_its_help_imports_no_package():
    code = ("import sys, embernic; sys.argv[1:] = ['--help']\n"
            "try: embernic.main()\n"
            "finally: assert not {'sim', 'gen', 'host', 'numpy', 'typer'} & sys.modules.keys()")
    shown = subprocess.run([sys.executable, "-c", code], cwd=_ROOT, text=True, capture_output=True)
    assert shown.returncode == 0, shown.stderr
    for name in (*PROGRAMS, *SIMULATOR):
        assert name in shown.stdout


@pytest.mark.parametrize("arguments", [
    ("gen", "--help"), ("documents", "--help"), ("calibrate", "--help"),
    ("measurements", "--help"), ("run", "--help"), ("datasets", "describe", "--help")])
def test_commands_are_those_of_the_packages(arguments):
    shown = _run(*arguments)
    assert shown.returncode == 0 and "Usage" in shown.stdout


def test_mistakes_are_one_line_and_status_2():
    for arguments, said in ((("dance",), "embernic: command must be one of gen, "),
                            (("run", "--nodes", "0"), "sim: nodes must be at least 1, not 0"),
                            (("gen", "--config", "nothing", "--output", "x"), "error: config ")):
        shown = _run(*arguments)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert shown.stderr.startswith(said) and shown.stderr.count("\n") == 1
