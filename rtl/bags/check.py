"""Bag check: accepts only bags whose rows exist and pool at this node."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.bounds import RowBounds
from rtl.bags.layouts import GRADIENT_WORDS, ArrivedBag, BagBeat, OwnedSegment, Segment
from rtl.bags.splitter import SegmentSplit
from rtl.bags.store import SegmentStore
from rtl.config import NicConfig
from rtl.formats import (
    NODE_BITS,
    RECORD_BITS,
    STEP_BITS,
    BagHead,
    GradientHead,
    Refused,
    Status,
)
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode, Freed
from rtl.stream import CreditQueue, SkidBuffer

__all__ = ["BAG_CHECK_COUNTERS", "BagCheck"]

BAG_CHECK_COUNTERS = CounterLayout(
    "bags", "keys", "bad_table", "bad_pool", "bad_owner", "bad_length", "bad_row")
TRAINED_CHECK_COUNTERS = CounterLayout(*BAG_CHECK_COUNTERS.members, "bad_step")
_STATUS = {"bad_table": Status.TABLE, "bad_pool": Status.KIND, "bad_owner": Status.KIND,
           "bad_length": Status.LENGTH, "bad_row": Status.ROW, "bad_step": Status.STEP}

SEGMENTS = 512
"""Segments in the store. An unfinished bag has at most the 140 beats of a packet."""
AHEAD = 16
"""Segments in the pipeline, or behind it in front of the store: each takes a place for 9 cycles."""
_ORIGIN = data.StructLayout({"node": NODE_BITS, "step": STEP_BITS})
_ITEM = data.StructLayout(
    {"segment": Segment, "origin": _ORIGIN, "wide": 1, "bad_length": 1, "beat_last": 1})


def _judged(trains: bool) -> data.StructLayout:
    """Layout of a segment, with the verdict on its bag so far: ``wrong``, and then the reason, one
    bit for each counter but ``bad_step``. ``unfinished``: the bag before it has no end. In
    training, ``gradient``: the bag has a gradient."""
    return data.StructLayout({
        "owned": OwnedSegment, "beat_last": 1, "keys": BagHead["keys"].width, "wrong": 1,
        "reasons": len(BAG_CHECK_COUNTERS.members) - 2, "unfinished": 1,
        **({"gradient": 1} if trains else {})})


class BagCheck(wiring.Component):
    """Pass bags that pool at this node and whose rows exist; drop and count all other bags.

    A bag is dropped whole. An honest peer never sends such a bag. The reasons, in the order in
    which they are counted:

    - ``bad_table``: the table has no valid descriptor, its owner is not among ``nodes``, or its
      vectors are longer than ``vector_beats``.
    - ``bad_pool``: the table pools at the requester, or is split by rows or columns.
    - ``bad_owner``: another node owns the table.
    - ``bad_length``: no key; more than ``bag_words`` words; a part of a bag; or the words of the
      bag are not whole in one packet.
    - ``bad_row``: a row beyond the table.

    Segments do not stall while they are judged: they enter with a place in the queue behind.

    A beat returns its credit after its last word, whatever its bags contain. A dropped bag has no
    answer. The order of bags is kept.

    In training, bags of gradients pass too. They get no answer. A bag of gradients is dropped if
    its step is not open (``bad_step``). Another instance, ``outward``, checks the bags of gradients
    of the host: it passes only those for other owners. The reason of any other bag is
    ``bad_owner``, or ``bad_length`` without a gradient. A bag with a gradient and weights is
    dropped as ``bad_length``.

    Parameters
    ----------
    config: ``tables`` is the number of table descriptors.
    outward: the bags leave this node.

    Ports
    -----
    i: stream of :data:`~rtl.bags.layouts.BagBeat`.
    o: stream of :data:`~rtl.bags.layouts.OwnedSegment`, whole bags; if ``outward``, ``node`` is the
        owner.
    freed: event :data:`rtl.network.layouts.Freed`: a beat of that requester was consumed.
    passed: event :data:`rtl.network.layouts.AtNode`: a bag of that requester was accepted, no later
        than the event of its last beat.
    refused: event :data:`rtl.network.layouts.AtNode`: a bag of that requester was dropped.
    arrived (training): stream of :data:`~rtl.bags.layouts.ArrivedBag`, for each bag of gradients.
    counted (training): event: with ``freed``, and the last bag of the beat has a gradient.
    fault (``outward``): event :data:`rtl.formats.Refused` with ``valid``, in the cycle of
        ``refused``.
    gradient_words, step, open (training): words of a gradient; the step whose gradients pass, while
        it is ``open``.
    node, nodes: number of this node, and the number of nodes.
    vector_beats: beats of the vector of a key; may change while idle.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``bags`` passed and their ``keys``; dropped bags, by reason.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("beat with the tail of a bag", "the bag's first segment"):
            SegmentSplit.LATENCY["beat", "its first item"] + OwnerSplit.LATENCY["key", "its owner"]
            + CreditQueue.LATENCY["item", "the same item"]
            + SegmentStore.LATENCY["commit", "its first segment"]}
    RATE = "1 segment per cycle; a dropped bag takes 1 cycle more, or 2 if its end is missing"

    def __init__(self, config: NicConfig, *, outward: bool = False):
        self._tables, self._most = config.tables, config.bag_words
        self._trains, self._outward = config.training, outward
        self._counted = TRAINED_CHECK_COUNTERS if config.training else BAG_CHECK_COUNTERS
        self._reasons = list(self._counted.members)[2:]
        self._judged = _judged(config.training)
        super().__init__({
            "i": In(stream.Signature(BagBeat)), "o": Out(stream.Signature(OwnedSegment)),
            "freed": Out(Freed), "passed": Out(AtNode), "refused": Out(AtNode),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            "vector_beats": In(5, init=config.vector_beats),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(self._counted), "idle": Out(1),
        } | ({"arrived": Out(stream.Signature(ArrivedBag)), "counted": Out(1),
              "gradient_words": In(GRADIENT_WORDS), "step": In(STEP_BITS), "open": In(1, init=1)}
             if config.training else {})
          | ({"fault": Out(data.StructLayout(Refused.members | {"valid": 1}))}
             if outward else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.items = items = SegmentSplit(
            _ORIGIN, self._most, plain=False, gradients=self._trains)
        m.submodules.split = split = OwnerSplit(_ITEM, self._tables, bags=True)
        m.submodules.bounds = bounds = RowBounds()
        m.submodules.queue = queue = CreditQueue(self._judged, AHEAD)
        m.submodules.store = store = SegmentStore(SEGMENTS, OwnedSegment)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        beat, item, entry = items.i.payload, items.o.payload, split.i.payload
        head = data.View(BagHead, item.record)
        bad_length = item.cut | item.long | (head.keys == 0) | (head.part != 0) | head.more
        if self._trains:
            bad_length |= self._stray(item)
        m.d.comb += [
            items.i.valid.eq(self.i.valid), self.i.ready.eq(items.i.ready),
            *(beat[name].eq(self.i.payload[name]) for name in ("data", "records", "last", "fresh")),
            beat.user.node.eq(self.i.payload.source), beat.user.step.eq(self.i.payload.step),
            split.i.valid.eq(items.o.valid & queue.free),
            items.o.ready.eq(split.i.ready & queue.free),
            queue.reserve.eq(items.o.valid & items.o.ready), split.o.ready.eq(1),
            entry.key.eq(item.record), entry.bag.eq(1),
            entry.user.segment.eq(item.segment), entry.user.origin.eq(item.user),
            entry.user.wide.eq(head.wide), entry.user.beat_last.eq(item.beat_last),
            entry.user.bad_length.eq(bad_length),
            *split.follow(self),
            bounds.segment.eq(split.coming.segment), bounds.rows.eq(split.rows),
            bounds.wide.eq(split.coming.wide), bounds.enable.eq(split.moves),
        ]
        if self._trains:
            m.d.comb += items.gradient_words.eq(self.gradient_words)
        self._judge(m, split, bounds.bad, queue)
        quiet = self._decide(m, queue.o, store)
        m.d.comb += self.idle.eq(items.idle & split.idle & queue.idle & quiet & store.idle)
        return m

    def _stray(self, item: data.View) -> Value:
        """Return whether a bag has a gradient and weights, or misses its gradient."""
        head = data.View(GradientHead, item.record)
        weights = head.gradient & head.weighted
        return ~head.gradient | weights if self._outward else weights

    def _judge(self, m: Module, split: OwnerSplit, bad_row: Value, queue: CreditQueue) -> None:
        """Put the segments that leave ``split`` into ``queue``."""
        found, item, judged = split.o.payload, split.o.payload.user, queue.i.payload
        # Of the last segment: its bag goes on; a row of its bag is bad.
        goes_on, spoiled, bad = Signal(), Signal(reset_less=True), Signal()
        of_pool = found.refused & (found.status == Status.KIND)
        mine, stray = (~found.own, found.own) if self._outward else (found.own, ~found.own)
        owned = ~found.refused & mine
        m.d.comb += [
            bad.eq(bad_row | (spoiled & ~item.segment.head)), queue.i.valid.eq(split.o.valid),
            judged.owned.segment.eq(item.segment),
            judged.owned.node.eq(found.owner if self._outward else item.origin.node),
            judged.owned.step.eq(item.origin.step),
            judged.owned.final_beat.eq(found.final_beat), judged.beat_last.eq(item.beat_last),
            judged.keys.eq(found.key.row), judged.unfinished.eq(item.segment.head & goes_on),
            judged.wrong.eq(~owned | item.bad_length | bad),
            # In the order of the counters.
            judged.reasons.eq(Cat(found.refused & ~of_pool, of_pool, ~found.refused & stray,
                                  owned & item.bad_length, owned & ~item.bad_length)),
        ]
        if self._trains:
            # The key is the low part of the head.
            head = data.View(GradientHead, Cat(found.key, C(0, RECORD_BITS - len(Value.cast(
                found.key)))))
            m.d.comb += judged.gradient.eq(head.gradient)
        with m.If(split.o.valid):
            m.d.sync += [goes_on.eq(~item.segment.tail), spoiled.eq(bad)]

    def _decide(self, m: Module, queued, store: SegmentStore) -> Value:
        """Store the segments of stream ``queued``, and commit or revoke their bags. Return whether
        nothing moves."""
        item, segment = queued.payload, queued.payload.owned.segment
        # The bag without an end was revoked.
        done, abort = Signal(), Signal()
        requester = Signal(NODE_BITS, reset_less=True)
        take, good, drop = Signal(), Signal(), Signal()
        may, wrong, answered = ~abort, item.wrong, good
        if self._trains:
            m.submodules.arrivals = arrivals = SkidBuffer(ArrivedBag)
            late = self._train(m, item, take, good, arrivals)
            # Any segment waits while an arrival waits: a register decides.
            may, wrong, answered = may & arrivals.i.ready, wrong | late, good & ~item.gradient
        m.d.comb += [
            abort.eq(queued.valid & item.unfinished & ~done),
            store.i.valid.eq(queued.valid & may), store.i.payload.eq(item.owned),
            queued.ready.eq(store.i.ready & may), take.eq(store.i.valid & store.i.ready),
            good.eq(take & segment.tail & ~wrong), drop.eq(take & segment.tail & wrong),
            store.commit.eq(good), store.revoke.eq(drop | abort),
        ]
        m.d.sync += [
            self.freed.valid.eq(take & item.beat_last), self.freed.node.eq(item.owned.node),
            self.passed.valid.eq(answered), self.passed.node.eq(item.owned.node),
            self.refused.valid.eq(drop | abort),
            self.refused.node.eq(Mux(abort, requester, item.owned.node)),
        ]
        with m.If(abort):
            m.d.sync += done.eq(1)
        with m.Elif(take):
            m.d.sync += [done.eq(0), requester.eq(item.owned.node)]
        reasons = list(item.reasons)
        if self._trains:
            reasons = [*(reason & item.wrong for reason in reasons), ~item.wrong]
        events = {name: drop & reason
                  for name, reason in zip(self._reasons, reasons, strict=True)}
        events["bad_length"] |= abort
        if self._outward:
            self._tell(m, events, item, take, abort)
        count(m, self.counters, bags=good, keys=Mux(good, item.keys, 0), **events)
        quiet = ~self.freed.valid & ~self.passed.valid & ~self.refused.valid
        if self._trains:
            quiet &= arrivals.idle
        return Value.cast(quiet)

    def _train(self, m: Module, item, take: Value, good: Value, arrivals: SkidBuffer) -> Value:
        """Offer the bags of gradients that pass at ``arrived``. Return whether the bag of ``item``
        has a gradient of a step that is not open."""
        owned, late = item.owned, Signal()
        wiring.connect(m, arrivals.o, wiring.flipped(self.arrived))
        m.d.comb += [
            late.eq(item.gradient & ((owned.step != self.step) | ~self.open)),
            arrivals.i.valid.eq(good & item.gradient),
            arrivals.i.payload.step.eq(owned.step), arrivals.i.payload.source.eq(owned.node),
        ]
        m.d.sync += self.counted.eq(take & item.beat_last & item.gradient)
        return late

    def _tell(self, m: Module, events: dict[str, Value], item, take: Value, abort: Value) -> None:
        """Report the fault of a dropped bag."""
        status, step = C(0, 8), Signal(STEP_BITS, reset_less=True)
        with m.If(take):
            m.d.sync += step.eq(item.owned.step)
        for name, reason in _STATUS.items():
            status = status | Mux(events[name], reason, 0)
        m.d.sync += [self.fault.valid.eq(Cat(events.values()).any()), self.fault.status.eq(status),
                     self.fault.step.eq(Mux(abort, step, item.owned.step))]
