"""UniqueFinder: passes each distinct key of a step once, and outputs an index for every slot."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.policies import policy_of
from rtl.config import NicConfig
from rtl.delivery.layouts import SlotIndex
from rtl.formats import (
    EMPTY_INDEX,
    INDEX_BITS,
    NO_INDEX,
    ROW_BITS,
    STEP_BITS,
    Key,
    RecordKind,
    repeat_fields,
)
from rtl.keys.hashing import hash_bits
from rtl.keys.one_hot import any_of
from rtl.keys.set_loop import SetLoop
from rtl.memory import Ram, report_swept
from rtl.monitor.counters import CounterLayout, count
from rtl.query.checker import Slot, slot_layout
from rtl.stream import CreditQueue, SkidBuffer, StreamFIFO

__all__ = ["UNIQUE_COUNTERS", "UniqueFinder"]

UNIQUE_COUNTERS = CounterLayout(
    "slots", "unique", "repeats", "retired_early", "no_index", "steps", "sweeps", "stall_sweep",
    "stall_output")

EPOCH_BITS = 10
"""Bits of the epoch: a sweep follows after 2^EPOCH_BITS steps. With a key of 64 tables and an
index, a word of the table has 68 of the 72 bits of a block RAM."""

QUEUE = 16
"""Slots that may be in flight or wait: each uses a place for 10 cycles."""


class UniqueFinder(wiring.Component):
    """Find repeats of a key within a step of this requester (paper, 4.1.1, at the requester).

    The first slot of a key passes to ``o``, and gets the next index of the step: 0, 1, 2 in the
    order of passing. A later slot of the key does not pass, and gets the same index. ``indices``
    outputs the index of every slot, in order, after its key has passed. An EMPTY slot does not pass
    unless it ``ends`` the share of its step; it then passes, and appears in ``indices``.

    **Steps.** The slots of a step are consecutive. A step begins where the step number changes, or
    with the first slot after a slot that ``ends``; its indices begin at 0. Each entry of the table
    has an epoch, the number of its step modulo 2^10; entries of other epochs match no key. Before
    the epochs wrap, the next slot waits until earlier slots have passed and all sets are swept:
    once in 2^10 steps, one cycle per set. Old entries therefore never match. The sender must not
    use the same number for two consecutive steps unless it ended the share of the first.

    **A full set** evicts its least recently used entry. Entries of other epochs are older than all
    entries of this epoch, and go first. ``retired_early`` counts evicted entries of the running
    step. If such a key appears again, it passes again with a new index, and both indices are right.
    ``unique`` exceeds the number of distinct keys by at most ``retired_early``.

    **Bags** that pool at their owner (with ``config.owner_bags``) are not looked up: each passes
    and gets the next index, counted in ``unique``. A slot with ``repeat``
    (:class:`rtl.query.BagRepeats`) does not pass, and gets the index of the bag that it repeats.

    **Indices** have 16 bits. EMPTY slots have 0xFFFF. A key that appears first when all 65,534
    indices are used passes; it and its repeats have 0xFFFE, counted in ``no_index``. A share of at
    most 65,534 slots never reaches this; the host rejects larger shares
    (:func:`host.wire.indices.check_share`).

    The pipeline never stalls (:class:`~rtl.keys.set_loop.SetLoop`): a slot enters when it has a
    place in the output queue.

    Parameters: ``config``. Higher bits of a table number than ``config.tables`` needs are not
    compared; :class:`rtl.query.QueryChecker` passes only keys in which they are 0.

    Ports
    -----
    i: stream of :func:`rtl.query.slot_layout`.
    o: the same: the first slot of each key, and each bag, unchanged.
    indices: stream of :data:`rtl.delivery.SlotIndex`, one per slot.
    enable: 0: every slot passes unchanged, with the same latency and without an index. May change
        while idle.
    counters: ``slots`` taken; ``unique``, first uses; ``repeats``; entries ``retired_early``; slots
        with ``no_index``; ``steps`` begun; ``sweeps`` between epochs; cycles in which a slot waits
        for a sweep (``stall_sweep``), or a result for the receiver of ``o`` or ``indices``
        (``stall_output``).
    idle: no slot inside, and no sweep.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`, ``ValueError`` if it
    leaves the table out.
    """

    LATENCY = {("slot", "the same slot on o"): 1 + SetLoop.LATENCY["lookup", "its result"]
               + CreditQueue.LATENCY["item", "the same item"],
               ("slot", "its index"): 2 + SetLoop.LATENCY["lookup", "its result"]
               + CreditQueue.LATENCY["item", "the same item"]}
    RATE = "1 slot per cycle, whatever the keys; once in 2^10 steps, a sweep of a cycle a set"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if not config.unique_keys:
            raise ValueError(f"unique_keys must be at least {2 * config.unique_ways}, not 0")
        self._ways, self._sets = config.unique_ways, config.unique_keys // config.unique_ways
        # The key as it is compared and stored.
        self._key_bits = ROW_BITS + ceil_log2(config.tables)
        self._positions = config.repeat_positions
        self._slot = slot_layout(True, self._positions) if config.owner_bags else Slot
        self._bag = {"bag": 1} if config.owner_bags else {}
        self._bag |= repeat_fields(self._positions)
        super().__init__({
            "i": In(stream.Signature(self._slot)), "o": Out(stream.Signature(self._slot)),
            "indices": Out(stream.Signature(SlotIndex)),
            "enable": In(1), "counters": Out(UNIQUE_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.words = words = StreamFIFO(self._slot, QUEUE)
        m.submodules.front_buffer = front = SkidBuffer(data.StructLayout(
            {"key": self._key_bits, "empty": 1, "ends": 1, "begins": 1} | self._bag))
        m.submodules.queue = queue = CreditQueue(data.StructLayout(
            {"index": INDEX_BITS, "goes": 1, "told": 1}), QUEUE)
        loop, sweeping, waits = self._enter(m, words, front, queue)
        self._decide(m, loop, queue)

        # Output: a passed slot is taken in the cycle in which its index enters the buffer.
        m.submodules.told = told = SkidBuffer(SlotIndex)
        wiring.connect(m, told.o, wiring.flipped(self.indices))
        slot, found, ends = words.o.payload, queue.o.payload, Signal()
        index = told.i.payload
        m.d.comb += [
            self.o.valid.eq(queue.o.valid & found.goes & told.i.ready),
            self.o.payload.eq(slot), ends.eq(self.o.ready | ~found.goes),
            queue.o.ready.eq(told.i.ready & ends),
            words.o.ready.eq(queue.o.valid & queue.o.ready),
            told.i.valid.eq(queue.o.valid & found.told & ends),
            index.index.eq(found.index), index.sample.eq(slot.sample), index.step.eq(slot.step),
            index.last.eq(slot.last), index.bag_end.eq(slot.kind != RecordKind.KEY),
            index.empty.eq(slot.kind == RecordKind.EMPTY), index.ends.eq(slot.ends),
            self.idle.eq(words.idle & told.idle & ~sweeping),
        ]
        if self._positions:
            with m.If(slot.repeat):
                m.d.comb += index.empty.eq(0)
        none = Signal()
        m.d.sync += none.eq(told.i.valid & told.i.ready & (found.index == NO_INDEX))
        count(m, self.counters, slots=self.i.valid & self.i.ready, no_index=none,
              stall_sweep=waits, stall_output=queue.o.valid & ~queue.o.ready)
        return m

    def _enter(self, m: Module, words: StreamFIFO, front: SkidBuffer,
               queue: CreditQueue) -> tuple[SetLoop, Signal, Signal]:
        """Detect the begin of steps, and look the keys up; the slots wait in ``words``.

        Return the loop, whether a sweep is in progress, and whether a slot waits for it.
        """
        sets = self._sets
        m.submodules.loop = loop = SetLoop(
            self._key_bits + EPOCH_BITS,
            data.StructLayout({"told": 1, "empty": 1, "ends": 1, "begins": 1} | self._bag),
            sets=sets, ways=self._ways, hash_key=self._hash,
            state_bits=policy_of("lru", self._ways).bits, label_bits=INDEX_BITS,
            style="lutram" if sets <= 64 else "bram" if sets < 2048 else "uram")
        slot, taken = self.i.payload, Signal()
        step, fresh, enable = Signal(STEP_BITS, reset_less=True), Signal(init=1), Signal()
        m.d.comb += [
            self.i.ready.eq(words.i.ready & front.i.ready), taken.eq(self.i.valid & self.i.ready),
            words.i.valid.eq(self.i.valid & front.i.ready), words.i.payload.eq(slot),
            front.i.valid.eq(self.i.valid & words.i.ready),
            front.i.payload.key.eq(Value.cast(slot.key)),
            front.i.payload.empty.eq(slot.kind == RecordKind.EMPTY),
            front.i.payload.ends.eq(slot.ends),
            front.i.payload.begins.eq(fresh | (slot.step != step)),
        ]
        for name in self._bag:
            m.d.comb += front.i.payload[name].eq(slot[name])
        m.d.sync += [fresh.eq(Mux(taken, slot.ends, fresh)), enable.eq(self.enable)]
        with m.If(taken):
            m.d.sync += step.eq(slot.step)

        epoch, of_slot = Signal(EPOCH_BITS, init=-1), Signal(EPOCH_BITS)
        final = Signal()  # the epoch is the last before a sweep
        sweeping, swept, address = Signal(init=1), Signal(), Signal(range(max(2, sets)))
        here, waits, enters = front.o.payload, Signal(), Signal()
        looks = enable & ~here.empty
        if self._bag:
            looks &= ~here.bag
        for name in self._bag:
            m.d.comb += loop.i.context[name].eq(here[name])
        m.d.comb += [
            waits.eq(here.begins & final), swept.eq(sweeping & (address == sets - 1)),
            front.o.ready.eq(queue.free & ~sweeping & ~waits),
            enters.eq(front.o.valid & front.o.ready), queue.reserve.eq(enters),
            of_slot.eq(epoch + here.begins),
            loop.i.valid.eq(enters), loop.i.key.eq(Cat(here.key, of_slot)),
            loop.i.looks.eq(looks), loop.i.writes.eq(looks),
            loop.i.context.told.eq(enable), loop.i.context.empty.eq(here.empty),
            loop.i.context.ends.eq(here.ends), loop.i.context.begins.eq(here.begins),
            loop.limit.eq(sets), loop.clear.eq(sweeping), loop.clear_address.eq(address),
        ]
        report_swept(m, ~sweeping)
        with m.If(sweeping):
            m.d.sync += address.eq(Mux(swept, 0, address + 1))
        m.d.sync += sweeping.eq((sweeping & ~swept)
                                | (front.o.valid & waits & loop.idle & ~sweeping))
        with m.If(enters):
            m.d.sync += epoch.eq(of_slot)
        m.d.sync += final.eq(~swept & (final | (enters & here.begins & (of_slot.all()))))
        count(m, self.counters, steps=enters & here.begins, sweeps=swept & final)
        return loop, sweeping, front.o.valid & waits

    def _hash(self, key: Value) -> Value:
        """Return the hash of a key, extended to all bits of a table number."""
        return hash_bits(Cat(key[:self._key_bits], C(0, Key.size - self._key_bits)))

    def _decide(self, m: Module, loop: SetLoop, queue: CreditQueue) -> None:
        """Place and number keys that are not in the table, and output the results to ``queue``."""
        policy = policy_of("lru", self._ways)
        now, after = loop.now, loop.after
        m.d.comb += [
            after.placed.eq(Mux(now.match.any(), 0, policy.victim(m, now.state, now.held))),
            after.state.eq(policy.update(m, now.state, now.match, after.placed)),
        ]

        # A cycle later: the next index; it stays at NO_INDEX when all are used.
        o, found = loop.o, queue.i.payload
        following, index, first = Signal(INDEX_BITS, reset_less=True), Signal(INDEX_BITS), Signal()
        placed = o.placed.any()
        if self._bag:
            placed |= o.valid & o.context.bag & o.context.told
        m.d.comb += [
            first.eq(placed), index.eq(Mux(o.context.begins, 0, following)),
            loop.label.eq(index), queue.i.valid.eq(o.valid),
            found.index.eq(Mux(o.context.empty, EMPTY_INDEX, Mux(first, index, o.label))),
            found.goes.eq(first | o.context.ends | ~o.context.told),
            found.told.eq(o.context.told),
        ]
        if self._positions:
            remembered = self._remembered(m, o, index)
            with m.If(o.context.repeat):
                m.d.comb += found.index.eq(remembered)
        with m.If(o.valid):
            m.d.sync += following.eq(index + (first & (index != NO_INDEX)))

        # Counters are a cycle late.
        seen = Signal(data.StructLayout({"first": 1, "again": 1, "lost": 1}))
        lost, of = Signal(EPOCH_BITS, reset_less=True), Signal(EPOCH_BITS, reset_less=True)
        m.d.sync += [
            lost.eq(any_of(Mux(o.placed[w], o.words[w].key[self._key_bits:], 0)
                           for w in range(self._ways))),
            of.eq(o.key[self._key_bits:]), seen.lost.eq((o.placed & o.held).any()),
            seen.first.eq(first), seen.again.eq(o.valid & o.match.any()),
        ]
        count(m, self.counters, unique=seen.first, repeats=seen.again,
              retired_early=seen.lost & (lost == of))

    def _remembered(self, m: Module, o: data.View, index: Signal) -> Value:
        """Store the ``index`` of each kept bag, and return the index of the bag that ``o``
        repeats."""
        m.submodules.indices = indices = Ram(INDEX_BITS, self._positions, latency=0)
        context = o.context
        m.d.comb += [
            indices.write_en.eq(o.valid & context.kept), indices.write_data.eq(index),
            indices.write_addr.eq(context.position), indices.read_addr.eq(context.position),
        ]
        return indices.read_data
