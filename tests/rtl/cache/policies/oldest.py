"""An unregistered policy, to test the selection of policies by name."""

from collections.abc import Hashable

import pytest

from host.placement import policies as models
from rtl.cache import policies
from rtl.config import POLICY_CODES

__all__ = ["add_oldest"]


class _Oldest(policies.Lru):
    """Select the way inserted longest ago. It has the composed update."""

    update = policies.Policy.update

    def on_hit(self, m, state, way):
        return state


class _OldestModel(models.Lru):
    def on_hit(self, key: Hashable) -> None:
        pass


def add_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a policy ``oldest`` until ``monkeypatch`` undoes it."""
    for package, kind in ((policies, _Oldest), (models, _OldestModel)):
        monkeypatch.setitem(package.POLICIES, "oldest", kind)
    monkeypatch.setitem(POLICY_CODES, "oldest", 1 + max(POLICY_CODES.values()))
