"""Result frames: packs interaction results into packets to the host."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import CREDIT_BITS, HostFrame, Opcode, RawBeat, ResultPartTag, Status
from rtl.gateable import Gateable
from rtl.interaction.records import ResultBeat
from rtl.interaction.result_groups import ResultGrouper, ResultSize
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["ResultFrames"]

class ResultFrames(Gateable, wiring.Component):
    """Pack interaction results into RESULTS packets, and parts of long results into RESULT_PART.

    The payload of a RESULTS packet is tag beats of sample numbers, 16 per beat, then as many
    results of one length and one step as fit into ``config.host_payload_beats``, see
    :class:`~rtl.interaction.result_groups.ResultGrouper`. A result that does not fit into a packet
    leaves in separate packets: a :data:`rtl.formats.ResultPartTag` beat, then its beats. The header
    counts results, or the beats of a part. A lost result also leaves in separate packets; the last
    of them has status PEER in its tag and its header.

    Beats wait until their packet is closed. The buffer has room for two packets, so one fills while
    the other leaves.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.ResultBeat`.
    time, timeout: a packet leaves when its first result is ``timeout`` cycles old.
    credit: copied into the header when it is made.
    headers: stream of :data:`rtl.formats.HostFrame`, one per packet; it ``answers`` the samples
        whose result ends in the packet.
    payload: stream of :data:`rtl.formats.RawBeat`, packets in the order of their headers.
    counters: ``results`` and ``packets`` sent, ``parts`` among the packets; RESULTS packets closed
        because they were ``full``, by ``timeouts``, or by ``changes`` of length or step.
    idle: inactive until an input changes. An unfinished result that waits for its next beat does
        not clear it; an open packet does.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {
        ("last beat that fits a packet", "header and first tag beat"): 5,
        ("last beat of a part", "header and tag beat"): 4,
    }
    RATE = "1 beat per cycle in, and out at most the tag beats more"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._most = config.host_payload_beats
        super().__init__({
            "i": In(stream.Signature(ResultBeat)),
            "time": In(32), "timeout": In(16), "credit": In(CREDIT_BITS),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)),
            "counters": Out(CounterLayout(
                "results", "packets", "parts", "full", "timeouts", "changes")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        most = self._most
        m.submodules.beats = beats = StreamFIFO(BEAT_BITS, 2 * most, style="bram")
        m.submodules.sizes = sizes = SkidBuffer(ResultSize(most))
        m.submodules.grouper = grouper = ResultGrouper(most)
        m.submodules.header_buffer = header = SkidBuffer(HostFrame)
        m.submodules.payload_buffer = payload = SkidBuffer(RawBeat)
        wiring.connect(m, sizes.o, grouper.i)
        wiring.connect(m, header.o, wiring.flipped(self.headers))
        wiring.connect(m, payload.o, wiring.flipped(self.payload))
        m.d.comb += [grouper.time.eq(self.time), grouper.timeout.eq(self.timeout)]
        self._measure(m, beats, sizes)
        start, inside = self._leave(m, grouper, beats, header, payload)
        group = grouper.groups.payload
        count(m, self.counters,
              results=Mux(start, Mux(group.part, group.last, group.count), 0),
              packets=start, parts=start & group.part, full=grouper.full,
              timeouts=grouper.expired, changes=grouper.changed)
        # ``beats`` may hold beats of an unfinished result; its output register fills first.
        m.d.comb += self.idle.eq(
            sizes.idle & grouper.idle & header.idle & payload.idle & ~inside
            & ((beats.level == 0) | beats.o.valid))
        return m

    def _measure(self, m: Module, beats: StreamFIFO, sizes: SkidBuffer) -> None:
        """Store the beats, and compute the length of each result or of each part of a long result.
        """
        item, size = self.i.payload, sizes.i.payload
        length, first, long = Signal(range(self._most)), Signal(16), Signal()
        last_length, last_step = Signal.like(length), Signal.like(item.step)
        fills, take = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(beats.i.ready & sizes.i.ready), take.eq(self.i.valid & self.i.ready),
            beats.i.valid.eq(self.i.valid & sizes.i.ready), beats.i.payload.eq(item.data),
            # The packet is full with this beat and its tag beat; only a long result continues.
            fills.eq(length == self._most - 2),
            sizes.i.valid.eq(self.i.valid & beats.i.ready & (item.last | fills)),
            size.beats.eq(length + 1), size.sample.eq(item.sample), size.step.eq(item.step),
            size.lost.eq(item.last & item.lost),
            size.part.eq(long | ~item.last | size.lost), size.first_beat.eq(first),
            size.last.eq(item.last),
            size.same_length.eq(~size.part & (length == last_length)),
            size.same_step.eq(item.step == last_step),
        ]
        with m.If(sizes.i.valid & sizes.i.ready):
            m.d.sync += [last_length.eq(length), last_step.eq(item.step)]
        with m.If(take):
            m.d.sync += length.eq(length + 1)
            with m.If(item.last):
                m.d.sync += [length.eq(0), first.eq(0), long.eq(0)]
            with m.Elif(fills):
                m.d.sync += [length.eq(0), first.eq(first + (self._most - 1)), long.eq(1)]

    def _leave(self, m: Module, grouper: ResultGrouper, beats: StreamFIFO, header: SkidBuffer,
               payload: SkidBuffer) -> tuple[Signal, Signal]:
        """Send header and first tag beat together, then the rest. Return whether a packet begins
        and whether it continues."""
        group, tags, part = grouper.groups.payload, grouper.tags, Signal(ResultPartTag)
        start, inside = Signal(), Signal()
        # Select signals for the many data bits: ``of_beats`` is a register, ``of_part`` is valid
        # outside a packet.
        of_beats, of_part = Signal(), Signal()
        tags_left, beats_left = Signal.like(group.tags), Signal.like(group.beats)
        tagging, final = Signal(), Signal()
        m.d.comb += [
            # The tag beats of a packet are never later than the packet, so no state waits for them.
            start.eq(~inside & grouper.groups.valid & header.i.ready & payload.i.ready),
            tags.ready.eq(payload.i.ready & Mux(inside, tagging, (
                grouper.groups.valid & ~group.part & header.i.ready))),
            beats.o.ready.eq(payload.i.ready & inside & ~tagging),
            grouper.groups.ready.eq(start), header.i.valid.eq(start),
            header.i.payload.opcode.eq(Mux(group.part, Opcode.RESULT_PART, Opcode.RESULTS)),
            header.i.payload.step.eq(group.step), header.i.payload.count.eq(group.count),
            header.i.payload.credit.eq(self.credit),
            header.i.payload.answers.eq(Mux(group.part, group.last, group.count)),
            part.sample.eq(group.sample), part.first_beat.eq(group.first_beat),
            part.last.eq(group.last), part.status.eq(Mux(group.lost, Status.PEER, 0)),
            header.i.payload.status.eq(Mux(group.part, part.status, 0)),
            of_part.eq(~inside & group.part),
            payload.i.payload.data.eq(
                Mux(of_beats, beats.o.payload, Mux(of_part, part, tags.payload))),
        ]
        with m.If(~inside):
            m.d.comb += payload.i.valid.eq(start)
            with m.If(start):
                m.d.sync += [
                    inside.eq(1), beats_left.eq(group.beats),
                    tagging.eq(group.tags > 1), of_beats.eq(group.tags <= 1),
                    tags_left.eq(group.tags - 1), final.eq(group.beats == 1),
                ]
        with m.Elif(tagging):
            m.d.comb += payload.i.valid.eq(1)
            with m.If(payload.i.ready):
                m.d.sync += [tags_left.eq(tags_left - 1), tagging.eq(tags_left != 1),
                             of_beats.eq(tags_left == 1)]
        with m.Else():
            m.d.comb += [payload.i.valid.eq(beats.o.valid), payload.i.payload.last.eq(final)]
            with m.If(beats.o.valid & payload.i.ready):
                m.d.sync += [beats_left.eq(beats_left - 1), final.eq(beats_left == 2),
                             inside.eq(~final), of_beats.eq(~final)]
        return start, inside
