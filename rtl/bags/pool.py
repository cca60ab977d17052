"""Bag pool: assigns bags to packet buffers by destination, and closes the buffers."""

from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.formats import RECORDS_PER_BEAT
from rtl.network.packet_pool import PacketPool
from rtl.network.sums import carry_saved

__all__ = ["BagPool"]

_SHORTEST = 2
"""Words of the shortest bag."""


class BagPool(PacketPool):
    """Assign words of packet buffers to segments, with one open buffer per destination.

    A unit is a bag, an item is a segment, and a position is a word. A bag takes all its words of a
    buffer with its head, and no packet cuts it. A buffer closes

    * before a bag of another step, or that does not fit, which costs a cycle;
    * with the segment that ends a bag, if fewer than 2 words are left or ``batch`` bags are inside;
    * when its first segment is ``timeout`` cycles old, as in :class:`rtl.network.PacketPool`;
    * with ``pauses`` instead: when there was no segment and no ``moving`` for ``timeout`` cycles,
      or :attr:`WAITS` times as long while ``waiting``, or when its first segment is :attr:`AGES`
      times as old.

    With ``pauses``, packets fill while the source moves, and leave soon after it stops. The timers
    are those of interrupt moderation (Intel 82583V datasheet, 7.1.9: RDTR and RADV).

    Parameters
    ----------
    destinations, buffers: see :class:`rtl.network.PacketPool`.
    words: words of a buffer.
    most_bags: a packet has at most ``batch`` bags.
    pauses: packets close in pauses.

    Ports
    -----
    valid, destination, step, last, take, vacant, ready, buffer, time, timeout, closed, freed,
    full, expired, starved, idle: as in :class:`rtl.network.PacketPool`. The segments of a bag
        follow each other.
    head, size, words: the offered item is the first segment of its bag; its size; words of the bag,
        2 to ``limit``.
    position: first word of the item inside in its buffer.
    unit: number of the bag in its buffer, at its head.
    limit: words of a packet; a change applies to the next bag.
    batch: bags that close a packet, 0 counts as 1; with ``most_bags``.
    moving, waiting: the source of the bags moves; it has more to send, but cannot move; with
        ``pauses``.
    closed: ``units`` are bags, ``positions`` are words.
    stepped: event: a buffer closes before the bag inside.
    outgrown: with ``stepped``: the step of the bag is that of the buffer, the bag does not fit.
    """

    AGES, WAITS = 64, 4
    """Age, and pause of a waiting source, that close a packet, in timeouts; powers of two."""

    RATE = ("1 segment per cycle; a close by time-out, by step or by a bag that does not fit takes "
            "a cycle from the input")

    def __init__(self, destinations: int, buffers: int, words: int, *, most_bags: bool = False,
                 pauses: bool = False):
        self._most_bags, self._pauses = most_bags, pauses
        super().__init__(
            destinations, buffers, words, match_step=True, kept=("head", "size", "words"),
            head=In(1), size=In(range(RECORDS_PER_BEAT + 1)), words=In(range(words + 1)),
            outgrown=Out(1), **({"batch": In(16)} if most_bags else {}),
            **({"moving": In(1), "waiting": In(1)} if pauses else {}))

    def _position(self, m, item, positions):
        following = Signal.like(positions, reset_less=True)
        with m.If(self.ready):
            m.d.sync += following.eq(self.position + item.size)
        return Mux(item.head, positions, following)

    def _grow(self, item, units, positions, updated):
        return [updated.positions.eq(positions + Mux(item.head, item.words, 0)),
                updated.units.eq(units + item.head)]

    def _expires(self, m, age):
        if not self._pauses:
            return super()._expires(m, age)
        quiet = Signal(len(self.timeout) + exact_log2(self.WAITS), reset_less=True)
        waits = Signal()
        m.d.sync += waits.eq(self.waiting)
        with m.If(self.ready | self.moving):
            m.d.sync += quiet.eq(1)
        with m.Elif(~quiet.all()):
            m.d.sync += quiet.eq(quiet + 1)
        return (((quiet >= self.timeout) & ~waits)
                | (quiet >= self.timeout << exact_log2(self.WAITS))
                | (age >= self.timeout << exact_log2(self.AGES)))

    def _compare(self, m, item, state, found, is_open, same, open_next, other):
        bits = len(self.limit) + 2
        bounds = [Signal(bits, name=f"bound{k}", reset_less=True) for k in range(2)]
        m.d.sync += [bounds[0].eq(self.limit + 1), bounds[1].eq(self.limit + 1 - _SHORTEST)]
        words = Mux(self.head, self.words, 0)
        before = (Mux(is_open, state.positions, 0), Mux(item.head, item.words, 0))
        (over_same, full_same), (over_found, full_found) = (
            [_exceed(bound, *numbers, words) for bound in bounds]
            for numbers in (before, (found.positions,)))
        alone, single = _exceed(bounds[1], words), Signal(reset_less=True)
        if self._most_bags:
            last = Signal.like(state.units, reset_less=True)
            m.d.sync += last.eq(Mux(self.batch == 0, 0, Mux(
                self.batch > self._positions, self._positions, self.batch - 1)))

            def enough(bags):
                return Mux(self.head, bags >= last, bags > last)

            full_same |= enough(Mux(is_open, state.units, 0) + item.head)
            full_found |= enough(found.units)
            alone |= last == 0
        over = Signal(reset_less=True)
        with m.If(self.take):
            m.d.sync += [single.eq(alone), over.eq(~other)]
        m.d.comb += self.outgrown.eq(self.stepped & over)
        filling = ((open_next & same & full_same) | (open_next & ~same & full_found)
                   | (~open_next & alone))
        splitting = self.head & (
            other | (open_next & ((same & over_same) | (~same & over_found))))
        return filling, splitting, single


def _exceed(bound: Value, *numbers: Value) -> Value:
    """Return whether the sum of ``numbers`` is at least ``bound``, with one carry chain."""
    bits = len(bound)
    ones, twos = bound, ~Cat(numbers[0], C(0, bits))[:bits]
    for number in numbers[1:]:
        ones, twos = carry_saved(ones, twos, ~Cat(number, C(0, bits))[:bits])
        twos = Cat(C(1, 1), twos)[:bits]
    return Value.cast((ones + twos)[bits - 1])
