"""Least recently used, as a list of keys from the oldest to the newest."""

from collections import OrderedDict
from collections.abc import Hashable

from host.placement.policies.policy import Policy

__all__ = ["Lru"]


class Lru(OrderedDict, Policy):
    """A set whose victim is the least recently used key.

    The class is itself the dictionary of keys, oldest first, because predicted hit rates need many
    fast lookups.
    """

    def __init__(self, ways: int):
        OrderedDict.__init__(self)
        Policy.__init__(self, ways)

    def victim(self) -> Hashable | None:
        return next(iter(self)) if len(self) == self.ways else None

    def on_hit(self, key: Hashable) -> None:
        self.move_to_end(key)

    def on_insert(self, key: Hashable, distant: bool = False) -> None:
        if len(self) == self.ways:
            self.popitem(last=False)
        self[key] = None
