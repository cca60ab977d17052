"""ShareDelivery: reduces a share to its distinct keys on the way to the dispatcher."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.delivery.layouts import SlotIndex
from rtl.delivery.unique import UNIQUE_COUNTERS, UniqueFinder
from rtl.formats import NO_SAMPLE, STEP_BITS, RecordKind
from rtl.gateable import Gateable
from rtl.monitor.counters import CounterLayout, count
from rtl.query.checker import Slot, slot_layout
from rtl.stream import SkidBuffer

__all__ = ["DELIVERY_COUNTERS", "ShareDelivery"]

DELIVERY_COUNTERS = CounterLayout(*UNIQUE_COUNTERS.members, "cut")


class ShareDelivery(Gateable, wiring.Component):
    """With ``unique``, pass each bag, and each distinct key of a share once; index all slots.

    Later blocks see the passed slots as one large sample without a number. Each key is a bag of its
    own (KEY_END), so its vector is not pooled with another vector. An EMPTY slot, the ``last``,
    ends the share. Packets of vectors therefore number them from 0 on, like the indices
    (:class:`~rtl.delivery.UniqueFinder`), and the last vector of a share is known. If the host does
    not end a share, the block ends it where the next step begins (``cut``), so that numbers of the
    next step begin at 0.

    Without ``unique``, slots pass to ``o`` unchanged in the same cycle.

    Parameters: ``config``; without ``config.unique_keys`` slots always pass.

    Ports
    -----
    i, o: streams of :data:`rtl.query.Slot`. shares: the same; the passed slots of shares.
    indices: stream of :data:`~rtl.delivery.SlotIndex`, one per slot, without the end of a share.
    step_end: event: all indices of a share have left.
    unique: see above; may change while idle, at least two cycles before a slot.
    counters: the counters of the finder, and shares that were ``cut``.
    idle: no slot inside.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {("slot", "the same slot on o"): 0,
               ("slot", "the same slot in its share"): 2 + UniqueFinder.LATENCY[
                   "slot", "the same slot on o"],
               ("slot", "its index"): 1 + UniqueFinder.LATENCY["slot", "its index"]}
    RATE = "1 slot per cycle, and a cycle more where a share is cut; see also UniqueFinder"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._finder = UniqueFinder(config) if config.unique_keys else None
        self._slot = slot = (
            slot_layout(True, config.repeat_positions) if config.owner_bags else Slot)
        super().__init__({
            "i": In(stream.Signature(slot)), "o": Out(stream.Signature(slot)),
            "shares": Out(stream.Signature(slot)),
            "indices": Out(stream.Signature(SlotIndex)), "step_end": Out(1), "unique": In(1),
            "counters": Out(DELIVERY_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        if self._finder is None:
            wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
            m.d.comb += [self.idle.eq(1), self.counters.eq(0)]
            return m
        m.submodules.finder = finder = self._finder
        m.submodules.slots = slots = SkidBuffer(self._slot)
        wiring.connect(m, slots.o, finder.i)
        m.submodules.way = way = SkidBuffer(data.StructLayout(
            {"slot": self._slot, "cut": 1, "before": STEP_BITS}))
        # ``cut``: the share of another step before the slot (``before``) was not ended.
        here, entering, share = way.o.payload, way.i.payload, self.shares.payload
        ends = Signal()
        # A copy: the selector of wide payloads elsewhere has many loads.
        passing = Signal(init=1, reset_less=True)
        m.d.sync += passing.eq(~self.unique)
        cutting, cut = self._cut(m, finder, way)
        m.d.comb += [
            finder.enable.eq(self.unique),
            slots.i.payload.eq(self.i.payload),
            self.o.payload.eq(self.i.payload), self.o.valid.eq(self.i.valid & passing),
            slots.i.valid.eq(self.i.valid & ~passing),
            # Shares proceed while the dispatcher waits: repeats do not need it.
            self.i.ready.eq(Mux(passing, self.o.ready, slots.i.ready)),
            way.i.valid.eq(finder.o.valid), finder.o.ready.eq(way.i.ready),
            entering.slot.eq(finder.o.payload),

            ends.eq(cutting | here.slot.ends), share.last.eq(ends),
            share.kind.eq(Mux(ends, RecordKind.EMPTY, RecordKind.KEY_END)),
            share.key.eq(here.slot.key), share.owner.eq(here.slot.owner),
            share.mine.eq(here.slot.mine & ~ends),
            *([share.bag.eq(here.slot.bag & ~ends), share.final_beat.eq(here.slot.final_beat)]
              if "bag" in self._slot.members else []),
            share.sample.eq(NO_SAMPLE),
            share.step.eq(Mux(cutting, here.before, here.slot.step)),
            self.shares.valid.eq(way.o.valid), way.o.ready.eq(self.shares.ready & ~cutting),
        ]
        told = finder.indices
        m.d.comb += [
            self.indices.payload.eq(told.payload),
            self.indices.valid.eq(told.valid & ~told.payload.ends),
            told.ready.eq(self.indices.ready | told.payload.ends),
            self.step_end.eq(told.valid & told.payload.ends),
            self.idle.eq(slots.idle & finder.idle & way.idle),
        ]
        for name in UNIQUE_COUNTERS.members:
            m.d.comb += self.counters[name].eq(finder.counters[name])
        count(m, self.counters, cut=cut)
        return m

    def _cut(self, m: Module, finder: UniqueFinder, way: SkidBuffer) -> tuple[Signal, Signal]:
        """Find a share that was not ended; return whether its end replaces the current slot, and
        whether it leaves."""
        slot, is_open, step = finder.o.payload, Signal(), Signal(STEP_BITS, reset_less=True)
        cutting, cut, done = Signal(), Signal(), Signal()
        m.d.comb += [
            way.i.payload.cut.eq(is_open & (slot.step != step)), way.i.payload.before.eq(step),
            cutting.eq(way.o.payload.cut & ~done),
            cut.eq(way.o.valid & cutting & self.shares.ready),
        ]
        with m.If(way.i.valid & way.i.ready):
            m.d.sync += [is_open.eq(~slot.ends), step.eq(slot.step)]
        with m.If(way.o.valid & self.shares.ready):
            m.d.sync += done.eq(cutting)
        return cutting, cut
