"""Training departure: packets of training to other nodes and to the host."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    STEP_BITS,
    FrameInfo,
    Opcode,
    OutgoingPartial,
    OutgoingRecord,
    RawBeat,
    ReductionLevel,
)
from rtl.gateable import Gateable
from rtl.network import CreditReturn, PacketMux, PartialPackager, RecordPackager
from rtl.network.layouts import Credit
from rtl.stream import Arbiter, SkidBuffer

__all__ = ["TrainingDeparture"]

_STEP_SOURCES, _REPORT_SOURCES = 2, 3


class TrainingDeparture(Gateable, wiring.Component):
    """Merge the packagers of training to one stream of packets for the network and one for the
    host.

    Partials and steps carry the credit of consumed partials. A node gets a step record CREDIT if
    too much credit is unreported and no other packet leaves for it. Step records leave at once,
    each in its own packet. State requests leave like the request lists for rows. Other packets
    leave when they are full or ``gradient_timeout`` old.

    Latency and throughput are those of :class:`~rtl.network.PartialPackager` and
    :class:`~rtl.network.RecordPackager`, plus those of a :class:`~rtl.network.PacketMux`.

    Ports
    -----
    partials: stream of :data:`rtl.formats.OutgoingPartial` to their owners.
    spilled: array of streams of :data:`rtl.formats.OutgoingPartial`, one for each
        :class:`rtl.formats.ReductionLevel`; ``destination`` is ignored.
    rows: stream of :data:`rtl.formats.OutgoingPartial`, new rows.
    state_requests, state_updates: streams of :data:`rtl.formats.OutgoingRecord`.
    steps: array of streams of step records to nodes; with ``config.owner_bags``, the last one has
        the credits of bags.
    reports: array of streams of step records to the host; with ``config.owner_bags``, the last one
        has the ENDs.
    net_headers, net_payload, host_headers, host_payload: packets, to the muxes of the two edges.
    host_credit: credit in packets to the host: query beats consumed.
    freed: event, a beat of partials was consumed, see :class:`~rtl.network.CreditReturn`.
    credit_in: event, the gradient credit of a received header.
    open_step: step of the CREDIT records.
    lost: bit mask of failed nodes (``config.link``).
    credit_node, credit: the credit in a header to that node, combinational (``config.link``).
    vector_packing, gradient_timeout, gradient_window, request_batch, request_timeout, time: see
        :mod:`rtl.control.registers`.
    counters: counters of the blocks, by name.
    idle: inactive until an input changes.

    Attribute ``blocks``: the blocks, by name.
    """

    def __init__(self, config: NicConfig):
        net, host, nodes = config.net_payload_beats, config.host_payload_beats, config.nodes
        self._packagers = {
            "partial_packager": PartialPackager(nodes, net, Opcode.PARTIALS, True),
            "step_packager": RecordPackager(nodes, 1, Opcode.STEPS, False, records=1),
            "spill_packager": PartialPackager(len(ReductionLevel), host, Opcode.SPILLED, False),
            "row_packager": PartialPackager(1, host, Opcode.ROW_UPDATES, False),
            "state_request_packager": RecordPackager(1, net, Opcode.STATE_REQUESTS, False),
            "state_packager": RecordPackager(1, host, Opcode.STATE_UPDATES, False),
            "report_packager": RecordPackager(1, 1, Opcode.STEP_REPORTS, False, records=1),
        }
        self._linked = config.link
        self._step_sources, self._report_sources = (
            sources + (config.owner_bags > 0) for sources in (_STEP_SOURCES, _REPORT_SOURCES))
        self._credits = CreditReturn(nodes, 2 + config.link)
        partial, record = (stream.Signature(shape) for shape in (OutgoingPartial, OutgoingRecord))
        packets = stream.Signature(FrameInfo), stream.Signature(RawBeat)
        self.blocks = {**self._packagers, "credit_return": self._credits}
        super().__init__({
            "partials": In(partial), "spilled": In(partial).array(len(ReductionLevel)),
            "rows": In(partial), "state_requests": In(record), "state_updates": In(record),
            "steps": In(record).array(self._step_sources),
            "reports": In(record).array(self._report_sources),
            "net_headers": Out(packets[0]), "net_payload": Out(packets[1]),
            "host_headers": Out(packets[0]), "host_payload": Out(packets[1]),
            "host_credit": In(CREDIT_BITS), "freed": In(self._credits.freed.shape()),
            "credit_in": In(Credit), "open_step": In(STEP_BITS), "vector_packing": In(2),
            "gradient_timeout": In(16), "gradient_window": In(CREDIT_BITS),
            "request_batch": In(16), "request_timeout": In(16), "time": In(32),
            "counters": Out(data.StructLayout({
                name: block.counters.shape() for name, block in self.blocks.items()})),
            "idle": Out(1),
        } | ({"credit_node": In(NODE_BITS), "credit": Out(CREDIT_BITS), "lost": In(nodes)}
             if config.link else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        blocks, credits = SimpleNamespace(**self._packagers), self._credits
        step_arbiter = Arbiter(OutgoingRecord, _STEP_SOURCES + 1)
        report_arbiter = Arbiter(OutgoingRecord, self._report_sources)
        spill_arbiter = Arbiter(OutgoingPartial, len(ReductionLevel))
        net_mux, host_mux = PacketMux(2), PacketMux(len(self._packagers) - 2)
        parts = {**self.blocks, "step_arbiter": step_arbiter, "report_arbiter": report_arbiter,
                 "spill_arbiter": spill_arbiter, "net_mux": net_mux, "host_mux": host_mux}
        steps = [*map(wiring.flipped, self.steps), credits.steps]
        if self._step_sources > _STEP_SOURCES:
            # Both kinds of credits meet before the other steps: a choice among three is faster.
            # The source of the credits of bags looks at ``ready``, which is a register.
            parts["credit_arbiter"] = credit_arbiter = Arbiter(OutgoingRecord, 2)
            parts["bag_credits"] = bag_credits = SkidBuffer(OutgoingRecord)
            bags, own = steps[_STEP_SOURCES:]
            wiring.connect(m, bags, bag_credits.i)
            wiring.connect(m, bag_credits.o, credit_arbiter.i[0])
            wiring.connect(m, own, credit_arbiter.i[1])
            steps[_STEP_SOURCES:] = [credit_arbiter.o]
        for name, block in parts.items():
            m.submodules[name] = block

        for port, packager in ((self.partials, blocks.partial_packager),
                               (self.rows, blocks.row_packager),
                               (self.state_requests, blocks.state_request_packager),
                               (self.state_updates, blocks.state_packager)):
            wiring.connect(m, wiring.flipped(port), packager.i)
        for arbiter, sources, packager in (
                (step_arbiter, steps, blocks.step_packager),
                (report_arbiter, map(wiring.flipped, self.reports), blocks.report_packager),
                (spill_arbiter, map(wiring.flipped, self.spilled), blocks.spill_packager)):
            for source, port in zip(sources, arbiter.i, strict=True):
                wiring.connect(m, source, port)
            wiring.connect(m, arbiter.o, packager.i)
        for level in ReductionLevel:
            # The two levels have separate packets.
            m.d.comb += [spill_arbiter.i[level].payload.destination.eq(level),
                         spill_arbiter.i[level].payload.record.level.eq(level)]

        for number, (name, packager) in enumerate(self._packagers.items()):
            mux, port = (net_mux, number) if number < 2 else (host_mux, number - 2)
            wiring.connect(m, packager.headers, mux.headers[port])
            wiring.connect(m, packager.payload, mux.payload[port])
            m.d.comb += packager.time.eq(self.time)
            if mux is net_mux:
                m.d.comb += [credits.node[port].eq(packager.credit_node),
                             packager.credit.eq(credits.value[port])]
            else:
                m.d.comb += packager.credit.eq(self.host_credit)
            if name in ("step_packager", "report_packager"):
                m.d.comb += packager.batch.eq(1)
            elif name == "state_request_packager":
                m.d.comb += [packager.batch.eq(self.request_batch),
                             packager.timeout.eq(self.request_timeout)]
            else:
                m.d.comb += packager.timeout.eq(self.gradient_timeout)
        m.d.comb += blocks.state_packager.batch.eq(-1)
        for packager in (blocks.partial_packager, blocks.spill_packager, blocks.row_packager):
            m.d.comb += packager.vector_packing.eq(self.vector_packing)
        for mux, header, payload in ((net_mux, self.net_headers, self.net_payload),
                                     (host_mux, self.host_headers, self.host_payload)):
            wiring.connect(m, mux.header_out, wiring.flipped(header))
            wiring.connect(m, mux.payload_out, wiring.flipped(payload))

        if self._linked:
            m.d.comb += [credits.node[-1].eq(self.credit_node), self.credit.eq(credits.value[-1]),
                         blocks.partial_packager.lost.eq(self.lost)]
        sent = self.net_headers
        m.d.comb += [
            blocks.partial_packager.window.eq(self.gradient_window),
            blocks.partial_packager.credit_in.eq(self.credit_in),
            credits.freed.eq(self.freed), credits.window.eq(self.gradient_window),
            credits.step.eq(self.open_step),
            credits.reported.valid.eq(sent.valid & sent.ready),
            credits.reported.node.eq(sent.payload.destination),
            credits.reported.value.eq(sent.payload.credit),
            self.idle.eq(Cat(block.idle for block in parts.values()).all()),
        ]
        m.d.comb += [self.counters[name].eq(block.counters) for name, block in self.blocks.items()]
        return m
