"""Policy: selects the way of a set for a new key, and defines the state of the set for this choice.
"""

from abc import ABC, abstractmethod

from amaranth.hdl import Module, Signal, Value, ValueLike

__all__ = ["Policy"]


class Policy(ABC):
    """Replacement policy of a set-associative cache, as logic between two states of a set.

    The word of a set stores ``bits`` of state next to the keys of its ways. A lookup reads the
    word, decides, and writes the new state back within one cycle
    (:class:`~rtl.cache.tags.TagPipeline`). All methods are therefore combinational, and
    :meth:`update` is in that one-cycle loop. They return expressions of their arguments. A method
    adds signals to ``m`` for values that it uses more than once, because an expression is emitted
    again for each use. A way is given one-hot; 0 means no event, and leaves the state unchanged.

    Every policy has these properties:

    - A state of zeros is the state of an empty set: a cleared word needs no other value.
    - The victim is exactly one way. Invalid ways go before valid ways, the lowest first, so a set
      evicts only when it is full. Ways become valid only by insertion, so ways 0 to n - 1 are the
      valid ones.
    - A lookup is a hit, an insertion or neither. A key whose vector is fetched again into its own
      way is a hit. The way of an insertion is the victim of the same state.

    Parameters: ``ways`` of a set. Raises ``TypeError`` or ``ValueError`` unless it is an integer of
    at least 1.

    LRU uses only ``state`` and ``way``; other policies need more. SRRIP (Jaleel et al., ISCA 2010)
    stores for each way how near its next use is, 0 for distant. The victim is the first way with
    the least value. An insertion subtracts the victim's value from all ways and then writes 1 to
    its own; a hit writes the largest value. NRU is SRRIP with one bit, cleared in the other ways
    when it would be set in all. With tree-PLRU, or after a distant insertion, a valid way could be
    chosen while another way is invalid: such a :meth:`victim` must use ``valid``. Bimodal (Qureshi
    et al., ISCA 2007) and scan-resistant insertion leave the way next to go if ``distant`` is 1.
    Its source, a random draw or a filter that detects the first touch of a key, is ready one stage
    earlier.
    """

    def __init__(self, ways: int):
        if isinstance(ways, bool) or not isinstance(ways, int):
            raise TypeError(f"ways must be an integer, not {ways!r}")
        if ways < 1:
            raise ValueError(f"ways must be at least 1, not {ways!r}")
        self.ways = ways

    @property
    @abstractmethod
    def bits(self) -> int:
        """Bits of a set's state, at least 1."""

    @abstractmethod
    def victim(self, m: Module, state: Value, valid: Value) -> Value:
        """Return the way that a new key takes; ``valid`` has a bit for each way."""

    @abstractmethod
    def on_hit(self, m: Module, state: Value, way: Value) -> Value:
        """Return the state after a lookup found its key in ``way``."""

    @abstractmethod
    def on_insert(self, m: Module, state: Value, way: Value,
                  distant: ValueLike = 0) -> Value:
        """Return the state after ``way``, the victim, took a new key.

        ``distant``: 1 if the key is not expected again soon.
        """

    def update(self, m: Module, state: Value, hit: Value, inserted: Value,
               distant: ValueLike = 0) -> Value:
        """Return the state after a lookup: :meth:`on_hit` and :meth:`on_insert` composed.

        ``hit`` is the way that holds the key, ``inserted`` the way whose vector is to be fetched:
        the victim, or the way of the hit itself, which is then not an insertion. A policy overrides
        this where less logic gives the same state.
        """
        after_hit, taken = Signal(self.bits), Signal(self.ways)
        m.d.comb += [after_hit.eq(self.on_hit(m, state, hit)), taken.eq(inserted & ~hit)]
        return self.on_insert(m, after_hit, taken, distant)
