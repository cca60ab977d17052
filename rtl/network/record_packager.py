"""Record packager: 8-byte records gathered into packets, one destination each."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.counters import CounterLayout, count
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    FrameInfo,
    Opcode,
    OutgoingRecord,
    RawBeat,
)
from rtl.memory import Ram
from rtl.stream import SkidBuffer

from .credits import CreditGate
from .layouts import Credit
from .packet_pool import PacketPool
from .packet_reader import PacketReader, Ready

__all__ = ["RECORD_PACKAGER_COUNTERS", "RecordPackager"]


RECORD_PACKAGER_COUNTERS = CounterLayout(
    "records", "packets", "stall_credit", "stall_buffers", "full", "timeouts", "step_changes")


class RecordPackager(wiring.Component):
    """Gather records by destination and step; send a packet when it is full or old.

    Records of one destination keep their order, within and across packets. Unused places of the
    last beat are zero.

    Latency from the record that fills a packet: 5 cycles to the header, 7 to the first beat, 2
    more with credits; throughput 1 record per cycle, less 1 cycle where a packet closes by step or
    by time-out.

    Parameters
    ----------
    destinations: destinations are numbered below this.
    max_beats: payload beats of the largest packet.
    opcode: what the packets carry.
    credited: whether beats need credit of their destination.
    buffers: packet buffers, by default 2 a destination, at least 4.

    Ports
    -----
    i: stream of :data:`rtl.formats.OutgoingRecord`.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, to
        a frame assembler.
    batch: records that close a packet (0 counts as 1); ``max_beats``, and ``window`` if credited,
        bound it.
    time, timeout: a packet closes when its first record is ``timeout`` cycles old.
    window, credit_in (credited): beats that may be outstanding at each destination, at least 1, and
        the acknowledgements, see :class:`rtl.network.CreditGate`.
    credit_node, credit: the credit that a header to ``credit_node`` carries, combinational.
    next_node: destination of the next packet, which may wait for credit; 0 while there is none.
    counters: ``records`` taken; ``packets`` sent; cycles in which a packet waited for credit or a
        record for a buffer; packets closed by ``full``, ``timeouts``, ``step_changes``.
    idle: holds no record; one that waits for credit is counted each cycle, hence not idle.

    Raises
    ------
    TypeError, ValueError
        A size is not an integer or out of range.
    """

    def __init__(self, destinations: int, max_beats: int, opcode: int, credited: bool, *,
                 buffers: int | None = None):
        for name, value, high in (("destinations", destinations, 1 << NODE_BITS),
                                  ("max_beats", max_beats, 140)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not 1 <= value <= high:
                raise ValueError(f"{name} must be between 1 and {high}, not {value!r}")
        self._opcode = Opcode(opcode)
        self._destinations, self._max_beats = destinations, max_beats
        self._credited = credited
        self._buffers = max(4, 2 * destinations) if buffers is None else buffers
        self._pool = PacketPool(destinations, self._buffers, max_beats * RECORDS_PER_BEAT,
                                match_step=True)
        super().__init__({
            "i": In(stream.Signature(OutgoingRecord)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            "batch": In(16), "time": In(32), "timeout": In(16),
            "credit_node": Out(NODE_BITS), "credit": In(CREDIT_BITS), "next_node": Out(NODE_BITS),
            "counters": Out(RECORD_PACKAGER_COUNTERS), "idle": Out(1),
        } | ({"window": In(CREDIT_BITS), "credit_in": In(Credit)} if credited else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        most, lanes = self._max_beats, RECORDS_PER_BEAT
        m.submodules.input = source = SkidBuffer(OutgoingRecord)
        m.submodules.pool = pool = self._pool
        ready = Ready(self._buffers, most * lanes, most)
        m.submodules.reader = reader = PacketReader(
            self._opcode, self._buffers, most * lanes, most)
        wiring.connect(m, wiring.flipped(self.i), source.i)
        wiring.connect(m, reader.headers, wiring.flipped(self.headers))
        wiring.connect(m, reader.payload, wiring.flipped(self.payload))

        limit, beats = Signal(range(most * lanes + 1)), Signal(range(most + 1))
        item = source.o.payload
        m.d.comb += beats.eq(most)
        if self._credited:
            # A packet of more beats than the window could never leave.
            m.d.comb += beats.eq(Mux(self.window < most, self.window, most))
        m.d.sync += limit.eq(Mux(self.batch < (beats << 3), self.batch, beats << 3))
        m.d.comb += [
            pool.valid.eq(source.o.valid), source.o.ready.eq(pool.ready),
            pool.destination.eq(item.destination), pool.step.eq(item.step), pool.last.eq(1),
            pool.limit.eq(limit), pool.time.eq(self.time), pool.timeout.eq(self.timeout),
            pool.freed.eq(reader.freed),
            self.credit_node.eq(reader.credit_node), reader.credit.eq(self.credit),
        ]
        self._store(m, pool, item.record, reader)

        closed = Signal(ready)
        m.d.comb += [closed[name].eq(pool.closed.payload[name])
                     for name in ("destination", "step", "buffer", "units")]
        m.d.comb += closed.beats.eq((pool.closed.payload.units + lanes - 1) >> 3)
        stalled, gate_idle = Signal(), Signal(init=1)
        if self._credited:
            m.submodules.gate = gate = CreditGate(ready, self._destinations)
            wiring.connect(m, gate.o, reader.i)
            m.d.comb += [gate.window.eq(self.window), gate.credit_in.eq(self.credit_in),
                         stalled.eq(gate.stalled), gate_idle.eq(gate.idle)]
        else:
            m.d.comb += gate_idle.eq(1)
        gate_in = gate.i if self._credited else reader.i
        m.d.sync += self.next_node.eq(Mux(gate_in.valid, closed.destination, 0))
        m.d.comb += [gate_in.valid.eq(pool.closed.valid), gate_in.payload.eq(closed),
                     pool.closed.ready.eq(gate_in.ready),
                     self.idle.eq(source.idle & pool.idle & gate_idle & reader.idle)]
        count(m, self.counters, records=pool.ready, packets=reader.i.valid & reader.i.ready,
              stall_credit=stalled, stall_buffers=pool.starved, full=pool.full,
              timeouts=pool.expired, step_changes=pool.stepped)
        return m

    def _store(self, m, pool, record, reader):
        """Write each record into its lane, a cycle after it got its position; read whole beats."""
        stride = ceil_log2(self._max_beats)
        depth = self._buffers << stride
        style = "lutram" if depth <= 64 else "bram"
        write, lane, address = Signal(), Signal(3), Signal(range(max(2, depth)))
        value = Signal(RECORD_BITS)
        m.d.sync += [
            write.eq(pool.ready), value.eq(record), lane.eq(pool.position[:3]),
            address.eq(Cat(pool.position[3:3 + stride], pool.buffer)),
        ]
        parts = Signal(data.ArrayLayout(RECORD_BITS, RECORDS_PER_BEAT))
        for k in range(RECORDS_PER_BEAT):
            m.submodules[f"lane{k}"] = ram = Ram(RECORD_BITS, depth, style=style)
            m.d.comb += [
                ram.write_en.eq(write & (lane == k)), ram.write_addr.eq(address),
                ram.write_data.eq(value), ram.read_en.eq(reader.read_en),
                ram.read_addr.eq(Cat(reader.read_beat[:stride], reader.read_buffer)),
            ]
            with m.If(Cat(C(k, 3), reader.beat.index) < reader.beat.units):
                m.d.comb += parts[k].eq(ram.read_data)
        m.d.comb += reader.data.eq(parts)
