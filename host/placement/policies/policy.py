"""Policy: the keys of a set, and the choice of the key to evict."""

from abc import ABC, abstractmethod
from collections.abc import Hashable

__all__ = ["Policy"]


class Policy(ABC):
    """A cache set under a textbook replacement policy.

    Model of :class:`rtl.cache.policies.Policy` with the same names and decisions, for keys instead
    of ways. A set starts empty and evicts only when full. ``key in policy`` states whether the set
    holds ``key``.

    Parameter: ``ways``, the maximum number of keys. Raises ``ValueError`` if it is below 1.
    """

    def __init__(self, ways: int):
        if ways < 1:
            raise ValueError(f"ways must be at least 1, not {ways!r}")
        self.ways = ways

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def victim(self) -> Hashable | None:
        """Return the key that the next insertion evicts; None while a way is free."""

    @abstractmethod
    def on_hit(self, key: Hashable) -> None:
        """Record that a lookup found ``key``, which the set holds."""

    @abstractmethod
    def on_insert(self, key: Hashable, distant: bool = False) -> None:
        """Insert ``key``, which the set does not hold, in place of the victim.

        distant: whether the key is not expected to be used again soon.
        """
