"""Selection of proofs for `make test`: those of unmodified blocks."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the proofs of mutants, which must fail (``test_broken_...``), as thorough."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name.startswith("test_broken_"):
            item.add_marker("thorough")
