"""Policy: the keys of a set, and which of them makes room for a new one."""

from abc import ABC, abstractmethod
from collections.abc import Hashable

__all__ = ["Policy"]


class Policy(ABC):
    """One set of a cache under a replacement policy, as a textbook has it.

    Model of :class:`rtl.cache.policies.Policy`, with the same names and decisions: of keys in place
    of ways, so that it need not hold them as the hardware does. A set starts empty, and evicts
    nothing until it is full. ``key in policy`` says whether the set holds ``key``.

    Parameter: ``ways``, the most keys that the set holds. Raises ``ValueError`` if it is below 1.
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
        """Take note that a lookup found ``key``, which the set holds."""

    @abstractmethod
    def on_insert(self, key: Hashable, distant: bool = False) -> None:
        """Insert ``key``, which the set does not hold, in place of the victim.

        ``distant``: it is not expected again soon.
        """
