"""Presets are generated once per test run, by the first worker that needs them."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def generated(tmp_path_factory) -> Callable[..., Path]:
    """Return ``generated(config, shell, again=False, link=True)``.

    It returns the folder that ``python -m gen`` wrote; with a shell, the NIC has no link unless
    ``link``. ``again`` selects the folder of a second process, whose sets and dictionaries of
    strings have another order. Tests must not write to the folder. ``<folder>.seconds`` contains
    the CPU seconds of the generation.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def folder_of(config: str, shell: str = "none", again: bool = False,
                  link: bool = True) -> Path:
        name = f"generated-{config}-{shell}{'-again' if again else ''}{'' if link else '-bare'}"
        folder = root / name
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                part = Path(f"{folder}.part")
                before = _seconds()
                subprocess.run(
                    [sys.executable, "-m", "gen", "--config", config, "--shell", shell,
                     *(() if link else ("--set", "link=false")), "--output", str(part)],
                    check=True, capture_output=True, cwd=ROOT,
                    env={**os.environ, "PYTHONHASHSEED": "2" if again else "1"})
                Path(f"{folder}.seconds").write_text(f"{_seconds() - before:.1f}\n")
                part.rename(folder)
        return folder

    return folder_of


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
