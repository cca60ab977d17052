"""A second policy beside LRU, to test what takes a policy by its name."""

from collections.abc import Hashable

import pytest

from host.placement import policies as models
from rtl import config
from rtl.cache import policies

__all__ = ["add_fifo"]


class _Fifo(policies.Lru):
    """The victim is the way inserted longest ago. It has the composed update."""

    update = policies.Policy.update

    def on_hit(self, m, state, way):
        return state


class _FifoModel(models.Lru):
    def on_hit(self, key: Hashable) -> None:
        pass


def add_fifo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a policy ``fifo`` too, with number 1, until ``monkeypatch`` undoes it."""
    monkeypatch.setitem(policies.POLICIES, "fifo", _Fifo)
    monkeypatch.setitem(models.POLICIES, "fifo", _FifoModel)
    monkeypatch.setitem(config.POLICY_CODES, "fifo", 1)
