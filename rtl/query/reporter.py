"""Host reporter: sends errors to the host, and credits if no other packet carries them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NO_SAMPLE,
    ErrorRecord,
    HostFrame,
    Opcode,
    RawBeat,
    Refused,
    Status,
)
from rtl.monitor.counters import CounterLayout, count
from rtl.network.link.layouts import Failed
from rtl.stream import Arbiter, SkidBuffer, StreamFIFO

__all__ = ["REPORTER_COUNTERS", "CreditReport", "HostReporter", "OwedCredit"]

REPORTER_COUNTERS = CounterLayout("errors", "credits")


CreditReport = data.StructLayout({"valid": 1, "value": CREDIT_BITS})
"""A packet leaves for the host in this cycle, with this credit in its header."""


class OwedCredit(wiring.Component):
    """Detect that unreported credit of the host requires a packet of its own.

    Parameters: ``window``, beats that the host may send ahead.

    Ports
    -----
    consumed: beats consumed, modulo 2^16.
    told: a packet with ``consumed`` is sent in this cycle.
    reported: event :data:`CreditReport` of any packet to the host; may lag behind ``told``.
    owed: more than a quarter of the window is unreported; 0 in the cycle after any packet, whose
        credit is not yet counted.
    idle: ``owed`` is 0 and stays 0.
    """

    LATENCY = {
        ("what is consumed", "its count"): 1,
        ("what is told", "its count"): 1,
    }
    SHARE = 4
    """A packet is due when more than the window divided by this number is owed."""

    def __init__(self, window: int):
        self._threshold = window // self.SHARE
        super().__init__({"consumed": In(CREDIT_BITS), "told": In(1), "reported": In(CreditReport),
                          "owed": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        told, ahead = Signal(CREDIT_BITS), Signal(CREDIT_BITS)
        seen, fresh = Signal(CREDIT_BITS), Signal()
        m.d.comb += [
            ahead.eq(self.reported.value - told),
            self.idle.eq(~self.owed & ~fresh & (self.consumed == seen)),
        ]
        m.d.sync += [
            self.owed.eq(((self.consumed - told)[:CREDIT_BITS] > self._threshold)
                         & ~self.told & ~self.reported.valid),
            seen.eq(self.consumed), fresh.eq(self.told | self.reported.valid),
        ]
        with m.If(self.told):
            m.d.sync += told.eq(self.consumed)
        # Ignore a report that is older than the last packet of this block.
        with m.Elif(self.reported.valid & ~ahead[-1]):
            m.d.sync += told.eq(self.reported.value)
        return m


class HostReporter(wiring.Component):
    """Report each error to the host in its own packet, and credits before the host runs out of
    them.

    Every packet to the host carries the credit: the number of query beats consumed. If the credit
    is more than a quarter of ``config.query_beats`` ahead of the last report, a packet without
    payload carries it. The host can therefore always use three quarters of the beats, once they are
    consumed. In training the same applies to ``config.gradient_credits`` and the field
    ``acknowledge``, which the assembler puts into every packet.

    Errors precede credits: their headers carry the credit too.

    Ports
    -----
    errors: stream of :data:`rtl.formats.ErrorRecord`, from the query checker.
    refused, opens_refused: streams of :data:`rtl.formats.Refused`, from the host receiver and the
        completion writer. gradients_refused (``config.training``): the same, from the gradient
        receiver.
    consumed: query beats consumed, modulo 2^16.
    reported: event :data:`CreditReport` of any packet to the host; may lag behind the packets of
        this block.
    acknowledge (``config.training``): beats of gradients and of returned spills consumed, modulo
        2^16; a packet has the value of the cycle in which it is ``reported``, or a later value.
    failed (``config.link``): event :data:`rtl.network.link.layouts.Failed`, at most one per node.
    headers: stream of :data:`rtl.formats.HostFrame`. The header of an error has its ``status``,
        except PEER; ``answers`` is 1 if it names a sample.
    payload: stream of :data:`rtl.formats.RawBeat`, one beat for each header without ``empty``.
    counters: ``errors`` and ``credits`` sent.
    idle: no error inside, and no credit due.
    """

    LATENCY = {
        ("error", "its header"): 2,
        ("refused message", "its header"): 3,
        ("refused message or failed peer, with a link", "its header"): 4,
        ("credit", "its header"): 2,
    }
    RATE = "1 packet per cycle"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._queries = OwedCredit(config.query_beats)
        self._gradients = OwedCredit(config.gradient_credits) if config.training else None
        super().__init__({
            "errors": In(stream.Signature(ErrorRecord)), "refused": In(stream.Signature(Refused)),
            "opens_refused": In(stream.Signature(Refused)),
            "consumed": In(CREDIT_BITS), "reported": In(CreditReport),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)),
            "counters": Out(REPORTER_COUNTERS), "idle": Out(1),
        } | ({"acknowledge": In(CREDIT_BITS), "gradients_refused": In(stream.Signature(Refused))}
             if config.training else {})
          | ({"failed": In(Failed)} if config.link else {}))
        self._peers = config.nodes if config.link else 0

    def elaborate(self, platform) -> Module:
        m = Module()
        sources = [self.refused, self.opens_refused]
        if self._gradients is not None:
            sources.append(self.gradients_refused)
        m.submodules.arbiter = arbiter = Arbiter(ErrorRecord, 1 + len(sources))
        m.submodules.header_buffer = header = SkidBuffer(HostFrame)
        # Buffer only the record: the rest of its beat is zero.
        m.submodules.record_buffer = record = SkidBuffer(ErrorRecord)
        wiring.connect(m, wiring.flipped(self.errors), arbiter.i[0])
        wiring.connect(m, header.o, wiring.flipped(self.headers))
        error = arbiter.o.payload
        behind, send_error, send_credit = Signal(), Signal(), Signal()
        m.submodules.queries = queries = self._queries
        watches = [queries]
        m.d.comb += [queries.consumed.eq(self.consumed), queries.reported.eq(self.reported)]
        if self._gradients is not None:
            m.submodules.gradients = gradients = self._gradients
            watches.append(gradients)
            m.d.comb += [
                gradients.consumed.eq(self.acknowledge),
                gradients.reported.valid.eq(self.reported.valid),
                gradients.reported.value.eq(self.acknowledge),
            ]
        buffers = []
        for port, refusals in enumerate(sources, 1):
            # With several requesters, the grant arrives late in the cycle.
            m.submodules[f"refused{port}"] = buffer = SkidBuffer(Refused)
            buffers.append(buffer)
            wiring.connect(m, wiring.flipped(refusals), buffer.i)
            if port == 1 and self._peers:
                buffers += self._with_failures(m, buffer.o, arbiter.i[port])
            else:
                _refuse(m, buffer.o, arbiter.i[port])
        m.d.comb += [watch.told.eq(header.i.valid) for watch in watches]
        m.d.comb += [
            behind.eq(Cat(watch.owed for watch in watches).any()),
            send_error.eq(arbiter.o.valid & header.i.ready & record.i.ready),
            send_credit.eq(behind & ~arbiter.o.valid & header.i.ready),
            arbiter.o.ready.eq(header.i.ready & record.i.ready),

            header.i.valid.eq(send_error | send_credit),
            header.i.payload.opcode.eq(Mux(arbiter.o.valid, Opcode.ERRORS, Opcode.CREDIT)),
            header.i.payload.destination.eq(0),
            header.i.payload.step.eq(Mux(arbiter.o.valid, error.step, 0)),
            header.i.payload.count.eq(arbiter.o.valid),
            header.i.payload.answers.eq(arbiter.o.valid & (error.sample != NO_SAMPLE)),
            # Samples that need a failed peer report it themselves.
            header.i.payload.status.eq(Mux(
                arbiter.o.valid & (error.status != Status.PEER), error.status, 0)),
            header.i.payload.credit.eq(self.consumed),
            header.i.payload.empty.eq(~arbiter.o.valid),
            record.i.valid.eq(send_error), record.i.payload.eq(error),
            self.payload.valid.eq(record.o.valid), record.o.ready.eq(self.payload.ready),
            self.payload.payload.data.eq(record.o.payload), self.payload.payload.last.eq(1),
            self.idle.eq(arbiter.idle & header.idle & record.idle
                         & Cat(buffer.idle for buffer in buffers).all()
                         & Cat(watch.idle for watch in watches).all()),
        ]
        count(m, self.counters, errors=send_error, credits=send_credit)
        return m

    def _with_failures(self, m: Module, refusals, errors) -> tuple[Arbiter, StreamFIFO]:
        """Turn refusals and failed nodes into errors; return the arbiter and the queue of nodes.

        Both share a port of the arbiter, because a further port would delay its grant. The queue
        has room for all nodes.
        """
        m.submodules.failures = queue = StreamFIFO(ErrorRecord, max(2, self._peers), style="lutram")
        m.submodules.either = either = Arbiter(ErrorRecord, 2)
        _refuse(m, refusals, either.i[0])
        wiring.connect(m, queue.o, either.i[1])
        wiring.connect(m, either.o, errors)
        record = queue.i.payload
        m.d.comb += [
            queue.i.valid.eq(self.failed.valid), record.sample.eq(NO_SAMPLE),
            record.step.eq(self.failed.step), record.status.eq(Status.PEER),
            record.node.eq(self.failed.node)]
        return either, queue


def _refuse(m: Module, refusals, errors) -> None:
    """Turn each refusal into an error."""
    refused, record = refusals.payload, errors.payload
    m.d.comb += [
        errors.valid.eq(refusals.valid), refusals.ready.eq(errors.ready),
        record.sample.eq(NO_SAMPLE), record.step.eq(refused.step),
        record.status.eq(refused.status), record.node.eq(0)]
