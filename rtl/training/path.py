"""TrainingPath: gradients in, updated rows out, with its blocks in data flow order.

The path of a gradient (paper, figures 12 and 13; docs/training.md)::

    gradients -> receiver -> local_source -> local_reducer -> sender -+-> departure -> net
                   (host)        ^  (returned)      | (spilled)       |      (PARTIALS)
                                 +------- host <----+                 | own
                                                                      v
    net -> partial_receiver ----------------------------------> partial_arbiter
                                                                      |
        +-------------------------- step_counter <--------------------+
        v                                  (every END, and all announced partials)
    global_source -> global_reducer -> row_updater -+-> local cache, and back
        ^  (returned)      | (spilled)              +-> departure -> host (rows, states)
        +------- host <----+                        |
                                                    v  (all written)
                                                 barrier -> DONE -> all nodes; the next step opens
"""

from types import MappingProxyType, SimpleNamespace

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from rtl.bags.layouts import ArrivedBag
from rtl.config import LANES, NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    RECORD_BITS,
    STEP_BITS,
    GradientBeat,
    OptimizerMode,
    OutgoingRecord,
    RecordBeat,
    ReductionLevel,
    Refused,
    Status,
    StepKind,
    StepRecord,
)
from rtl.gradient import (
    GradientReceiver,
    GradientReducer,
    GradientSender,
    PartialReceiver,
    RounderBank,
    RowUpdater,
    sum_meta_layout,
)
from rtl.keys.owner_split import DESCRIPTOR_WRITES
from rtl.network.layouts import CountedBeat, Credit
from rtl.stream import Arbiter
from rtl.training.barrier import StepBarrier
from rtl.training.departure import TrainingDeparture
from rtl.training.passes import PassSource
from rtl.training.step_counter import StepCounter

__all__ = ["TrainingPath"]


def _bag_ports() -> dict[str, Member]:
    """Return the ports for bags of gradients."""
    bags = stream.Signature(ArrivedBag)
    return {
        "bags_sent": In(bags), "bags_idle": In(1), "bags_arrived": In(bags),
        "bags_consumed": In(CREDIT_BITS), "bags_refused": In(stream.Signature(Refused)),
        "bag_credits": In(stream.Signature(OutgoingRecord)), "counted_step": Out(STEP_BITS),
        "counts": Out(1), "gpu_updates": In(1)}


_PACKETS = "net_headers", "net_payload", "host_headers", "host_payload"
_RECEIVER_PARTS = "unpacker", "check", "expander"
_INPUTS = "gradients", "returned", "states", "written", "partials", "steps", "updated"
_REGISTERS = (
    "node", "nodes", "vector_beats", "vector_packing", "pooling_mean", "learning_rate", "epsilon",
    "gradient_window", "gradient_timeout", "request_batch", "request_timeout")
"""Ports that drive the same port of every block that has it, each through a register to shorten
paths."""


def _bag_inputs(path: wiring.Component) -> tuple[Value, ...]:
    """Return, for each input for bags of gradients, whether it moves."""
    return (*(getattr(path, f"bags_{name}").valid for name in ("sent", "arrived", "refused")),
            path.bag_credits.valid)


class TrainingPath(wiring.Component):
    """Combine all blocks of training except the lookups: gradients of the host in, updated rows
    out.

    :mod:`rtl.training` explains why the path has no deadlock. Latency and throughput are those of
    the blocks.

    Parameters: ``config``, a :class:`rtl.config.NicConfig`.

    Ports
    -----
    gradients, returned, states, written: from the host parser.
    partials, steps, credit_in: from the network parser; ``credit_in`` is its gradient credit.
    dropped: beats of GRADIENTS and RETURNED packets that the host receiver has just dropped.
    refused: stream of :data:`rtl.formats.Refused`: dropped packets of gradients, and RETURNED for
        dropped beats that the host returned.
    lookups, updated, write, frozen: to and from the local cache, see
        :class:`~rtl.cache.LocalCache`.
    net_headers, net_payload, host_headers, host_payload: packets, to the muxes of the two edges.
    host_credit: credit in packets to the host: query beats consumed.
    acknowledge: for the same packets, beats of gradients and of returned spills consumed, modulo
        2^16.
    credit_node, credit: credit of partials in a header to that node, combinational
        (``config.link``).
    lost: bit mask of failed nodes. Data for them is dropped, and the path does not wait for them
        (``config.link``).
    waits: this node waits for others: for room for partials, for the end of their gradients or for
        their rows (``config.link``).
    open_step, written_owners, forget, forgetting: see :class:`~rtl.training.StepBarrier`;
        ``written_owners`` is its ``written``.
    bags_sent, bags_idle, bags_arrived (``config.owner_bags``): bags of gradients that left for
        their owners, and that arrived, streams of :data:`rtl.bags.layouts.ArrivedBag`; none is on
        its way to ``bags_sent``.
    bags_consumed, bags_refused, bag_credits (``config.owner_bags``): beats of the host's bags that
        were consumed, modulo 2^16; dropped bags, stream of :data:`rtl.formats.Refused`; and step
        records with the credits of bags, stream of :data:`rtl.formats.OutgoingRecord`.
    counted_step, counts (``config.owner_bags``): the step whose partials and bags are accepted, and
        whether more of it is.
    gpu_updates (``config.owner_bags``): register of the same name.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    node, nodes, vector_beats, vector_packing, pooling_mean, local_reduction, gradient_partials,
        optimizer, learning_rate, epsilon, gradient_window, gradient_share, gradient_timeout,
        request_batch, request_timeout: registers of the same name (:mod:`rtl.control.registers`).
    time: cycle counter.
    counters: counters of the blocks, by name.
    idle: inactive until an input changes.

    Attribute ``blocks``: the blocks with counters, by the names of their counters.

    Raises ``TypeError`` if ``config`` is not a NicConfig.
    """

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        beats, ways = config.vector_beats, config.gradient_ways
        sums: dict = {"gradient_sums": config.gradient_sums, "units": 0}
        self._receiver = GradientReceiver(config, depth=config.gradient_beats)
        self._departure = TrainingDeparture(config)
        self._blocks = {
            "local_source": PassSource(),
            "local_reducer": GradientReducer(
                config.local_gradient_keys, ways, beats=beats, split=True, **sums),
            "gradient_sender": GradientSender(config),
            "partial_receiver": PartialReceiver(config),
            "returned_receiver": PartialReceiver(config, "host"),
            "step_counter": StepCounter(config.nodes),
            "global_source": PassSource(),
            "global_reducer": GradientReducer(
                config.global_gradient_keys, ways, beats=beats, split=False, style="uram",
                **sums),
            "row_updater": RowUpdater(config),
            "step_barrier": StepBarrier(config.nodes),
        }
        self.blocks = MappingProxyType(self._blocks | self._departure.blocks)
        departure, updater = self._departure.signature.members, self._blocks["row_updater"]
        records = stream.Signature(RecordBeat)
        super().__init__({
            "gradients": In(records), "returned": In(stream.Signature(CountedBeat)),
            "states": In(records), "written": In(records),
            "partials": In(stream.Signature(CountedBeat)), "steps": In(records),
            "credit_in": In(Credit), "dropped": In(CREDIT_BITS),
            "refused": Out(stream.Signature(Refused)),
            **{name: updater.signature.members[name] for name in ("lookups", "write", "frozen")},
            "updated": updater.signature.members["vectors"],
            **{name: departure[name] for name in _PACKETS},
            "host_credit": In(CREDIT_BITS), "acknowledge": Out(CREDIT_BITS),
            "open_step": Out(STEP_BITS), "written_owners": Out(config.nodes), "forget": Out(1),
            "forgetting": In(1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=1), "vector_beats": In(5),
            "vector_packing": In(2), "pooling_mean": In(1),
            "local_reduction": In(1, init=1), "gradient_partials": In(1),
            "optimizer": In(OptimizerMode), "learning_rate": In(32), "epsilon": In(32),
            "gradient_window": In(CREDIT_BITS), "gradient_share": In(16),
            "gradient_timeout": In(16), "request_batch": In(16), "request_timeout": In(16),
            "time": In(32),
            "counters": Out(data.StructLayout(
                {f"gradient_{part}": getattr(self._receiver, f"{part}_counters").shape()
                 for part in _RECEIVER_PARTS}
                | {name: block.counters.shape() for name, block in self._blocks.items()}
                | self._departure.counters.shape().members)),
            "idle": Out(1),
        } | ({"credit_node": In(NODE_BITS), "credit": Out(CREDIT_BITS), "lost": In(config.nodes),
               "waits": Out(1)} if config.link else {})
          | (_bag_ports() if config.owner_bags else {}))
        self._linked, self._bags = config.link, config.owner_bags > 0
        # Sums in float32 need no conversion.
        self._bank = (RounderBank(sum_meta_layout(beats)) if config.gradient_sums == "exact"
                      else None)

    def elaborate(self, platform) -> Module:
        m = Module()
        blocks, receiver, departure = (
            SimpleNamespace(**self._blocks), self._receiver, self._departure)
        # Partials of this node and of other nodes, as one stream to their sums.
        partial_arbiter = Arbiter(GradientBeat, 2)
        parts = {**self._blocks, "receiver": receiver, "departure": departure,
                 "partial_arbiter": partial_arbiter}
        if self._bank is not None:
            parts["rounder_bank"] = self._bank
        for name, block in parts.items():
            m.submodules[name] = block
        if self._bank is not None:
            self._bank.join(m, (blocks.local_reducer, blocks.global_reducer))

        # Requester: gradients of the host, summed by key, to the owners.
        wiring.connect(m, wiring.flipped(self.gradients), receiver.i)
        wiring.connect(m, receiver.o, blocks.local_source.fresh)
        wiring.connect(m, receiver.flush, blocks.local_source.over)
        telling_idle = self._refuse(m, receiver.refused, blocks.returned_receiver.lost)
        # Without local reduction, a gradient is sent as a partial unchanged: float32, not a sum.
        reducing, rounded, spills = (Signal(name=n) for n in ("reducing", "rounded", "spills"))
        m.d.sync += [reducing.eq(self.local_reduction), rounded.eq(self.gradient_partials),
                     spills.eq(self.gradient_partials & self.local_reduction)]
        m.d.comb += [
            blocks.local_reducer.enable.eq(reducing), blocks.local_reducer.rounded.eq(rounded),
            blocks.gradient_sender.rounded.eq(spills),
        ]
        self._reduce(m, blocks.local_source, blocks.local_reducer, blocks.gradient_sender.flushed,
                     spills)
        sums, terms = blocks.local_reducer.o, blocks.gradient_sender.terms
        m.d.comb += [
            terms.valid.eq(sums.valid), sums.ready.eq(terms.ready),
            *(terms.payload[name].eq(sums.payload[name]) for name in GradientBeat.members),
        ]
        wiring.connect(m, blocks.local_reducer.passed, blocks.gradient_sender.passed)
        self._send(m, blocks, departure)
        wiring.connect(m, blocks.gradient_sender.spilled, departure.spilled[ReductionLevel.LOCAL])
        # Owner: partials of all nodes, counted and summed, into the rows.
        wiring.connect(m, wiring.flipped(self.partials), blocks.partial_receiver.i)
        wiring.connect(m, wiring.flipped(self.steps), blocks.step_counter.steps)
        wiring.connect(m, blocks.gradient_sender.own, partial_arbiter.i[0])
        wiring.connect(m, partial_arbiter.o, blocks.global_source.fresh)
        wiring.connect(m, blocks.step_counter.complete, blocks.global_source.over)
        self._collect(m, blocks, partial_arbiter)
        untold = (~self._collect_bags(m, blocks, departure),) if self._bags else ()
        self._reduce(m, blocks.global_source, blocks.global_reducer, blocks.row_updater.flushed, 1)
        wiring.connect(m, blocks.global_reducer.o, blocks.row_updater.sums)
        self._spill(m, blocks.global_reducer.passed, departure.spilled[ReductionLevel.GLOBAL])
        self._return(m, blocks)
        updater = blocks.row_updater
        wiring.connect(m, updater.lookups, wiring.flipped(self.lookups))
        wiring.connect(m, wiring.flipped(self.updated), updater.vectors)
        wiring.connect(m, updater.write, wiring.flipped(self.write))
        wiring.connect(m, wiring.flipped(self.states), updater.states)
        for name in ("rows", "state_requests", "state_updates"):
            wiring.connect(m, getattr(updater, name), getattr(departure, name))
        # Steps: their ends, and the reports to the host and to other nodes.
        wiring.connect(m, blocks.row_updater.done, blocks.step_barrier.own)
        for number, source in enumerate((blocks.gradient_sender, blocks.step_barrier)):
            wiring.connect(m, source.steps, departure.steps[number])
        for number, source in enumerate((
                blocks.gradient_sender, blocks.row_updater, blocks.step_barrier)):
            wiring.connect(m, source.reports, departure.reports[number])
        if self._linked:
            m.d.comb += [departure.credit_node.eq(self.credit_node),
                         self.credit.eq(departure.credit),
                         *(part.lost.eq(self.lost) for part in (
                             departure, blocks.step_counter, blocks.step_barrier))]
        for name in _PACKETS:
            wiring.connect(m, getattr(departure, name), wiring.flipped(getattr(self, name)))
        counted = self._control(m, parts, blocks)
        # A register, because the idle of the NIC depends on it: the state of the blocks two cycles
        # ago. An input in that cycle or the last one may have changed the state since.
        resting = (*(block.idle for block in parts.values()), telling_idle, ~counted,
                   ~blocks.local_source.passed.valid, ~blocks.global_source.passed.valid, *untold)
        rested, still, came = Signal(len(resting)), Signal(), Signal()
        m.d.sync += [
            rested.eq(Cat(resting)), still.eq(rested.all() & ~came),
            came.eq(Cat(*(getattr(self, name).valid for name in _INPUTS), self.credit_in.valid,
                        self.dropped, self.forgetting, self.write_en,
                        *(_bag_inputs(self) if self._bags else ())).any()),
        ]
        m.d.comb += self.idle.eq(still & ~came)
        return m

    def _reduce(self, m: Module, source: PassSource, reducer: GradientReducer, flushed,
                spilling) -> None:
        """Feed ``reducer`` from ``source``, pass by pass; report the end of each pass to
        ``flushed``."""
        wiring.connect(m, source.o, reducer.i)
        wiring.connect(m, source.flush, reducer.flush)
        wiring.connect(m, reducer.flushed, flushed)
        over = reducer.flushed
        # One cycle later: the next action of the source depends on the number.
        event = Signal.like(source.passed)
        m.d.sync += [
            event.valid.eq(over.valid & over.ready), event.step.eq(over.payload.step),
            event.spilled.eq(Mux(spilling, over.payload.passed, 0)),
            event.some.eq(spilling & over.payload.passed.any()),
        ]
        m.d.comb += source.passed.eq(event)

    def _send(self, m: Module, blocks: SimpleNamespace, departure: TrainingDeparture) -> None:
        """Send partials to their owners; drop partials to failed owners."""
        partials, taken = blocks.gradient_sender.remote, departure.partials
        gone = self.lost.bit_select(partials.payload.destination, 1) if self._linked else C(0)
        m.d.comb += [taken.valid.eq(partials.valid & ~gone), taken.payload.eq(partials.payload),
                     partials.ready.eq(taken.ready | gone)]
        if self._linked:
            m.d.comb += self.waits.eq(blocks.step_counter.waits | blocks.step_barrier.waits
                                      | (taken.valid & ~taken.ready))

    def _spill(self, m: Module, passed, spilled) -> None:
        """Form spilled records of the beats that the global reduction passed on."""
        beat, record = passed.payload, spilled.payload.record
        m.d.comb += [
            spilled.valid.eq(passed.valid), passed.ready.eq(spilled.ready),
            spilled.payload.step.eq(beat.step), spilled.payload.data.eq(beat.data),
            record.row.eq(beat.key.row), record.table.eq(beat.key.table),
            record.beat.eq(beat.beat),
        ]

    def _collect(self, m: Module, blocks: SimpleNamespace, arbiter: Arbiter) -> None:
        """Merge the partials of other nodes with those of this node, and count both."""
        counter, others, own = blocks.step_counter, blocks.partial_receiver, arbiter.i[0]
        wiring.connect(m, blocks.gradient_sender.own_end, counter.own_end)
        busy = others.pending | ~arbiter.idle
        if self._bags:
            busy |= self.bags_arrived.valid
        m.d.comb += [
            arbiter.i[1].valid.eq(others.o.valid), others.o.ready.eq(arbiter.i[1].ready),
            arbiter.i[1].payload.eq(others.o.payload.beat),
            others.open_step.eq(counter.open_step), others.open.eq(counter.open),
            others.share.eq(self.gradient_share),
            *(() if self._bags else (counter.arrived.eq(others.arrived),)),
            counter.own_arrived.valid.eq(own.valid & own.ready),
            counter.own_arrived.source.eq(self.node),
            counter.own_arrived.step.eq(own.payload.step),
            # All partials of this node were taken before their end was announced.
            counter.busy.eq(busy),
            blocks.step_barrier.received.eq(counter.done),
        ]

    def _collect_bags(self, m: Module, blocks: SimpleNamespace,
                      departure: TrainingDeparture) -> Value:
        """Count the bags of gradients, and tell the host their number at the end of a step; return
        whether it is to be told."""
        counter, others, sender = blocks.step_counter, blocks.partial_receiver, (
            blocks.gradient_sender)
        arrived, report = self.bags_arrived, departure.reports[-1]
        record, step, ends = Signal(StepRecord), Signal(STEP_BITS, reset_less=True), Signal(32)
        total, kept, telling = Signal(32), Signal(32, reset_less=True), Signal()
        wiring.connect(m, wiring.flipped(self.bags_sent), sender.bags)
        wiring.connect(m, wiring.flipped(self.bag_credits), departure.steps[-1])
        m.d.comb += [
            sender.bags_idle.eq(self.bags_idle),
            # Partials cannot wait.
            arrived.ready.eq(~others.arrived.valid),
            counter.arrived.valid.eq(others.arrived.valid | arrived.valid),
            *(counter.arrived[name].eq(Mux(
                others.arrived.valid, others.arrived[name], arrived.payload[name]))
              for name in ArrivedBag.members),
            self.counted_step.eq(counter.open_step), self.counts.eq(counter.open),
            blocks.row_updater.others.eq(ends),
            record.kind.eq(StepKind.END), record.count.eq(kept), report.valid.eq(telling),
            report.payload.step.eq(step), report.payload.record.eq(record),
        ]
        with m.If(report.ready):
            m.d.sync += telling.eq(0)
        with m.If(arrived.valid & arrived.ready):
            m.d.sync += total.eq(total + 1)
        # No bag is accepted in the cycle in which a step is complete.
        with m.If(counter.complete.valid & counter.complete.ready):
            m.d.sync += [total.eq(0), step.eq(counter.complete.payload)]
            with m.If(self.gpu_updates):
                m.d.sync += [telling.eq(1), ends.eq(ends + 1), kept.eq(total)]
        return telling

    def _refuse(self, m: Module, gradients, lost) -> Value:
        """Report dropped packets of gradients, and returned beats that were dropped; return whether
        no report is pending."""
        m.submodules.refused_arbiter = arbiter = Arbiter(Refused, 2 + self._bags)
        if self._bags:
            wiring.connect(m, wiring.flipped(self.bags_refused), arbiter.i[2])
        told = arbiter.i[1]
        wiring.connect(m, gradients, arbiter.i[0])
        wiring.connect(m, arbiter.o, wiring.flipped(self.refused))
        # One report for all beats that are lost before the report leaves.
        m.d.comb += told.payload.status.eq(Status.RETURNED)
        with m.If(lost.valid):
            m.d.sync += [told.valid.eq(1), told.payload.step.eq(lost.step)]
        with m.Elif(told.ready):
            m.d.sync += told.valid.eq(0)
        return arbiter.idle & ~told.valid

    def _return(self, m: Module, blocks: SimpleNamespace) -> None:
        """Route the beats that the host returns to the reduction that spilled them."""
        wiring.connect(m, wiring.flipped(self.returned), blocks.returned_receiver.i)
        back = blocks.returned_receiver.o
        for level, source in ((ReductionLevel.LOCAL, blocks.local_source),
                              (ReductionLevel.GLOBAL, blocks.global_source)):
            m.d.comb += [
                source.returned.payload.eq(back.payload.beat),
                source.lost.eq(blocks.returned_receiver.lost),
                source.lost.valid.eq(blocks.returned_receiver.lost.valid
                                     & (blocks.returned_receiver.lost.level == level)),
            ]
            with m.If(back.payload.level == level):
                m.d.comb += [source.returned.valid.eq(back.valid),
                             back.ready.eq(source.returned.ready)]

    def _control(self, m: Module, parts: dict, blocks: SimpleNamespace) -> Signal:
        """Connect registers to the blocks, counters to the outside, and events between blocks;
        return whether the host's count of written rows is new in this cycle."""
        receiver, departure, barrier = self._receiver, self._departure, blocks.step_barrier
        sender = blocks.gradient_sender
        keepers = receiver, sender, blocks.partial_receiver, blocks.returned_receiver
        ports = {name: Signal.like(getattr(self, name), reset_less=True) for name in _REGISTERS}
        m.d.sync += [port.eq(getattr(self, name)) for name, port in ports.items()]
        ports["time"] = self.time
        for block in parts.values():
            for name, port in ports.items():
                if hasattr(block, name):
                    m.d.comb += getattr(block, name).eq(port)
        for block in keepers:
            m.d.comb += [getattr(block, name).eq(getattr(self, name)) for name in DESCRIPTOR_WRITES]
        written, dimension, dropped = Signal(32), Signal(9), Signal(CREDIT_BITS)
        consumed = receiver.consumed + blocks.returned_receiver.consumed + dropped
        m.d.sync += [
            dropped.eq(dropped + self.dropped),
            # The sum is a register, because the reporter and the idle of the NIC depend on it.
            self.acknowledge.eq(consumed + self.bags_consumed if self._bags else consumed),
            # Like the optimizer's other settings, it does not change shortly before a gradient.
            dimension.eq(Mux(self.vector_packing == 0, self.vector_beats << 4,
                             LANES >> self.vector_packing)),
        ]
        said = data.View(StepRecord, self.written.payload.data[:RECORD_BITS])
        counted = Signal()
        m.d.sync += counted.eq(self.written.valid)
        with m.If(self.written.valid):
            m.d.sync += written.eq(said.count)
        m.d.comb += [
            blocks.row_updater.written.eq(written), self.written.ready.eq(1),
            blocks.row_updater.mode.eq(self.optimizer), blocks.row_updater.dimension.eq(dimension),
            self.frozen.eq(blocks.row_updater.frozen),
            receiver.gradient_step.eq(barrier.open_step), self.open_step.eq(barrier.open_step),
            self.written_owners.eq(barrier.written),
            departure.open_step.eq(barrier.open_step), departure.host_credit.eq(self.host_credit),
            departure.freed.eq(blocks.partial_receiver.freed),
            departure.credit_in.eq(self.credit_in),
            self.forget.eq(barrier.forget), barrier.forgetting.eq(self.forgetting),
            self.write_ready.eq(Cat(block.write_ready for block in keepers).all()),
        ]
        m.d.comb += [self.counters[f"gradient_{part}"].eq(getattr(receiver, f"{part}_counters"))
                     for part in _RECEIVER_PARTS]
        m.d.comb += [self.counters[name].eq(block.counters) for name, block in self._blocks.items()]
        m.d.comb += [self.counters[name].eq(departure.counters[name])
                     for name in departure.counters.shape().members]
        return counted
