"""Reasons for skipping a test: the missing optional package or tool."""

import shutil

import pytest

from embernic_extras import PACKAGES, installation

__all__ = ["absent", "needs_tool"]


def absent(module: str) -> str:
    """Return the reason of ``pytest.importorskip`` for one of ``PACKAGES``."""
    title, extra = PACKAGES[module]
    return f"the test requires {title}: {installation(extra)}"


def needs_tool(command: str) -> pytest.MarkDecorator:
    """Return the mark of a test that runs a command of the system."""
    return pytest.mark.skipif(shutil.which(command) is None,
                              reason=f"the test requires {command}, which is not installed")
