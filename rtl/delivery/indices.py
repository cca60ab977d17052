"""Index packager: packs the indices of slots into packets to the host."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.delivery.layouts import SlotIndex
from rtl.formats import (
    CREDIT_BITS,
    INDEX_BITS,
    INDICES_PER_BEAT,
    SAMPLE_BITS,
    STEP_BITS,
    HostFrame,
    IndexTag,
    Opcode,
    RawBeat,
)
from rtl.gateable import Gateable
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["INDEX_PACKAGER_COUNTERS", "IndexPackager"]

INDEX_PACKAGER_COUNTERS = CounterLayout(
    "indices", "packets", "full", "timeouts", "step_ends", "changes")

_Front = data.StructLayout({
    "index": INDEX_BITS, "sample": SAMPLE_BITS, "step": STEP_BITS, "last": 1, "follows": 3})
"""An index. ``follows``: the index may share the packet of its predecessor if all bits are 1. The
bits cover the step and both halves of the sample number, for short paths."""

_Packet = data.StructLayout({
    "sample": SAMPLE_BITS, "first_slot": 16, "samples": 16, "last": 1, "step": STEP_BITS,
    "count": 16})

PACKETS = 16
"""Packets that may wait to leave."""


class IndexPackager(Gateable, wiring.Component):
    """Collect the indices of consecutive slots of a step, and send full, old and last packets.

    The payload of an INDICES packet is a :data:`rtl.formats.IndexTag` beat and up to
    ``config.host_payload_beats`` - 1 beats of 32 indices, of whole samples or parts; unused places
    are zero. Sample numbers of a packet are consecutive. A packet therefore closes where another
    step begins or a sample number does not follow its predecessor (a rejected sample is missing).
    It also closes when it is full, at ``step_end``, or by timeout. A packet waits until it closes,
    because its header counts the indices; the buffer has room for the beats of two packets.

    Parameters: ``config``.

    Ports
    -----
    i: stream of :data:`rtl.delivery.SlotIndex`; its ready is a register.
    step_end: event: the indices so far, including this cycle's, leave; later indices belong to
        another packet.
    time, timeout: a packet closes when its first index is ``timeout`` cycles old.
    credit: copied into the header when it is made.
    headers: stream of :data:`rtl.formats.HostFrame`, one per packet; ``answers`` counts the samples
        whose last slot is in the packet.
    payload: stream of :data:`rtl.formats.RawBeat`, packets in the order of their headers.
    counters: ``indices`` and ``packets`` sent; packets closed because they were ``full``, by
        ``timeouts``, by ``step_ends``, or by ``changes`` of the step or jumps of sample numbers.
    idle: no index inside; an open packet is not idle.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {("index that fills a packet", "header and tag beat"): 5,
               ("step_end", "header and tag beat"): 4}
    RATE = "1 index per cycle, whatever closes packets"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._room = config.host_payload_beats - 1
        super().__init__({
            "i": In(stream.Signature(SlotIndex)), "step_end": In(1),
            "time": In(32), "timeout": In(16), "credit": In(CREDIT_BITS),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)),
            "counters": Out(INDEX_PACKAGER_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.front_buffer = front = SkidBuffer(_Front)
        m.submodules.beats = beats = StreamFIFO(RawBeat, 2 * (self._room + 1), style="bram")
        m.submodules.packets = packets = StreamFIFO(_Packet, PACKETS)
        m.submodules.header_buffer = header = SkidBuffer(HostFrame)
        m.submodules.payload_buffer = payload = SkidBuffer(RawBeat)
        wiring.connect(m, header.o, wiring.flipped(self.headers))
        wiring.connect(m, payload.o, wiring.flipped(self.payload))
        ending = self._enter(m, front)
        is_open = self._gather(m, front, ending, beats, packets)
        inside = self._leave(m, packets, beats, header, payload)
        m.d.comb += self.idle.eq(front.idle & ~is_open & packets.idle & ~inside & header.idle
                                 & payload.idle)
        return m

    def _enter(self, m: Module, front: SkidBuffer) -> Signal:
        """Mark indices that follow their predecessor; return whether the last index so far ends."""
        item, taken = self.i.payload, Signal()
        # The step, and the number of the next sample.
        step, sample = (Signal(shape, reset_less=True, name=name) for name, shape in (
            ("step", STEP_BITS), ("sample", SAMPLE_BITS)))
        ended, ending, half = Signal(init=1), Signal(), SAMPLE_BITS // 2
        m.d.comb += [
            front.i.valid.eq(self.i.valid), self.i.ready.eq(front.i.ready),
            taken.eq(self.i.valid & self.i.ready),
            *(front.i.payload[name].eq(item[name]) for name in ("index", "sample", "step", "last")),
            front.i.payload.follows.eq(Cat(
                ~ended & (item.step == step), item.sample[:half] == sample[:half],
                item.sample[half:] == sample[half:])),
        ]
        with m.If(taken):
            m.d.sync += [step.eq(item.step), sample.eq(item.sample + item.last), ended.eq(0),
                         ending.eq(0)]
        with m.If(self.step_end):
            m.d.sync += [ended.eq(1), ending.eq(1)]
        return ending

    def _gather(self, m: Module, front: SkidBuffer, ending: Signal, beats: StreamFIFO,
                packets: StreamFIFO) -> Signal:
        """Collect a beat; send it when a further index joins its packet, or the packet closes.

        Return whether a packet is open.
        """
        here, packet = front.o.payload, Signal(_Packet, reset_less=True)
        is_open, old, final = Signal(), Signal(), Signal(reset_less=True)
        opened, slot = Signal(32, reset_less=True), Signal(16)
        # Of the beat: place of the next index; all are used. Of the packet: beats left.
        lane, whole = Signal(range(INDICES_PER_BEAT), reset_less=True), Signal(reset_less=True)
        room = Signal(range(self._room), reset_less=True)
        held = Signal(data.ArrayLayout(INDEX_BITS, INDICES_PER_BEAT), reset_less=True)
        follows = here.follows.all()
        # The packet is full; full or old; open and ready to leave.
        full, shut, active = Signal(), Signal(), Signal()
        go, ends, close, takes, begins = (Signal(name=name) for name in (
            "go", "ends", "close", "takes", "begins"))
        m.d.comb += [
            ends.eq(ending & ~front.o.valid),
            close.eq(active & (shut | ends | (front.o.valid & ~follows))),
            front.o.ready.eq(go), takes.eq(front.o.valid & go),
            begins.eq(~is_open | shut | ~follows),
            beats.i.valid.eq(active & (shut | Mux(front.o.valid, ~follows | whole, ending))),
            Cat(beats.i.payload.data).eq(held), beats.i.payload.last.eq(close),
            packets.i.valid.eq(close), packets.i.payload.eq(packet),
        ]
        # Keep room for pushes that the level, one cycle old, does not show yet.
        fits = (beats.level <= 2 * self._room) & (packets.level <= PACKETS - 2)
        m.d.sync += [go.eq(fits), active.eq(fits & (takes | (is_open & ~close)))]
        fills = Mux(takes, ~begins & (lane == len(held) - 1) & final, full)
        ages = is_open & ~close & ((self.time - opened)[:32] >= self.timeout)
        m.d.sync += [full.eq(fills), old.eq(ages), shut.eq(fills | ages)]
        with m.If(takes):
            m.d.sync += [
                is_open.eq(1), slot.eq(Mux(here.last, 0, slot + 1)), packet.last.eq(here.last),
                lane.eq(Mux(begins, 1, lane + 1)), whole.eq(~begins & (lane == len(held) - 1)),
            ]
            with m.If(begins):
                m.d.sync += [
                    opened.eq(self.time), packet.sample.eq(here.sample),
                    packet.step.eq(here.step), packet.first_slot.eq(slot),
                    packet.samples.eq(1), packet.count.eq(1),
                    room.eq(self._room - 1), final.eq(self._room == 1),
                ]
            with m.Else():
                m.d.sync += [packet.count.eq(packet.count + 1),
                             packet.samples.eq(packet.samples + packet.last)]
                with m.If(whole):
                    m.d.sync += [room.eq(room - 1), final.eq(room == 1)]
            # The first index of a beat clears the other places.
            for k in range(INDICES_PER_BEAT):
                first = begins | whole
                if k == 0:
                    with m.If(first):
                        m.d.sync += held[k].eq(here.index)
                else:
                    with m.If(first):
                        m.d.sync += held[k].eq(0)
                    with m.Elif(lane == k):
                        m.d.sync += held[k].eq(here.index)
        with m.Elif(close):
            m.d.sync += is_open.eq(0)
        count(m, self.counters, indices=takes, full=close & full,
              timeouts=close & ~full & old, step_ends=close & ~full & ~old & ends,
              changes=close & ~full & ~old & ~ends)
        return is_open

    def _leave(self, m: Module, packets: StreamFIFO, beats: StreamFIFO, header: SkidBuffer,
               payload: SkidBuffer) -> Signal:
        """Send header and tag beat together, then the indices; return whether indices remain."""
        packet, tag = packets.o.payload, Signal(IndexTag)
        inside, start = Signal(), Signal()
        m.d.comb += [
            start.eq(~inside & packets.o.valid & header.i.ready & payload.i.ready),
            packets.o.ready.eq(start), header.i.valid.eq(start),
            header.i.payload.opcode.eq(Opcode.INDICES), header.i.payload.step.eq(packet.step),
            header.i.payload.count.eq(packet.count), header.i.payload.credit.eq(self.credit),
            header.i.payload.answers.eq(packet.samples - ~packet.last),
            tag.sample.eq(packet.sample), tag.first_slot.eq(packet.first_slot),
            tag.samples.eq(packet.samples), tag.last.eq(packet.last),
            payload.i.valid.eq(Mux(inside, beats.o.valid, start)),
            payload.i.payload.data.eq(Mux(inside, beats.o.payload.data, tag)),
            payload.i.payload.last.eq(inside & beats.o.payload.last),
            beats.o.ready.eq(inside & payload.i.ready),
        ]
        ends = beats.o.valid & payload.i.ready & beats.o.payload.last
        m.d.sync += inside.eq(Mux(inside, ~ends, start))
        count(m, self.counters, packets=start)
        return inside
