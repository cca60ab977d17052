"""SmartNic: the top of the NIC: its blocks, wired by the table of :mod:`rtl.links`.

The path of a lookup (paper, figures 9 to 11)::

    host_rx -> host_receiver -> gpu_rings -> host_parser
               host_parser -> query_checker -> delivery -> index_packager
                                     |                             v
                                     |                         dispatcher --+-> local lookups -+
                                     |                                      +-> remote_cache   |
                                     +-> GPU vectors -> local_cache.fills   misses v  ^ fills  |
                                                            net_tx <- lookup_packager |        |
    net_rx -> net_receiver -> net_parser -+-> vectors --------------------------------+        |
                                          +-> lookup_receiver -> lookup_check -> requests <----+
    remote_cache: vectors -> hold_buffer                                            |
       dedupe <---------------------------------------------------------------------+
         | misses                      ^ fills            | vectors
         v                             |                  v
       local_cache --------------------+            vector_router -+-> hold_buffer
         | misses                                                  +-> vector_packager -> net_tx
         v
       row_reads -> request_packager -> gpu_rings -> row_reads -> host_tx
    hold_buffer -> pooler -> pooled_router -+-> result_packager -> host_tx
                                            +-> concatenator -> interaction -> result_frames
               host_parser -> dense vectors -+       ^                               |
                                             v       |                               v
          dispatcher -> samples -----> dense_ring ---+                            host_tx
                                             +-> requests -> host_tx

Absence of deadlock
-------------------
Every item that a peer or the host sends has a place that was reserved before its request:

- queries: a beat of the query buffer (host credits);
- lookups: a beat of the owner's receiver (credits per requester);
- vectors of other nodes and of the GPU: the landing row of their miss, and then a place of the hold
  buffer, reserved in sample order before the lookup left;
- dense vectors: a place of the dense ring.

``net_rx`` and ``host_rx`` are therefore always ready, and the remaining waits are acyclic. Queries
wait for places in the hold buffer and the dense ring, for miss ids of the remote cache, and for
room towards the owners. Lookups wait for entries, miss ids and scatter nodes. Vectors free all of
these, and wait only for ``net_tx`` and ``host_tx``, whose receivers accept every packet eventually.
The oldest dispatched sample has all its places, and a sample uses at most half of the
hold buffer, so places are freed in order.

With register ``output_queues``, a lookup that misses always leaves the remote cache for a queue of
its owner (:class:`rtl.network.OutputQueues`), and waits for credit there. The queues have as many
places as there are miss ids. A slow owner then delays lookups to other owners only when its own
lookups use all miss ids, or the hold buffer is full behind them.

With an interaction, pooled vectors wait for the dense vector of their sample. The first slot of the
sample requested its place, and places are granted in sample order. Earlier samples have their
places and do not depend on it. Once the place is granted, the request leaves, when its packet is
full or by timeout, and the host must send the vector, independent of its own waits. Later stages
wait only for ``host_tx``. Each buffer there has room for all items that must be present together: a
dense vector leaves before its bags, and a packet of results closes without the next result.

With rings in GPU memory, a list waits until the GPU kernel has consumed an earlier list. The kernel
waits until a slot of vectors has been read, and consumes lists independent of that. The read of a
slot needs ``host_tx``; its vectors, and rows that the NIC reads itself, have the landing rows of
their misses.

With ``config.training``, the gradient path (:class:`rtl.training.TrainingPath`) is connected to the
parsers, the local cache, the muxes and the dispatcher, which holds back lookups of later steps
(:mod:`rtl.nic_training`); :mod:`rtl.training` explains why it cannot deadlock.

With ``config.link``, packets pass the reliable link (:mod:`rtl.network.link`) before the assembler.
A packet waits there for room in the window of its peer and in the pool. Acknowledgements free this
room; they are processed as packets arrive, before any other wait, and leave ahead of all other
packets. A peer that does not acknowledge is given up after a bounded number of tries, and its
packets are dropped.

Lookup credits return in the headers of the vectors that answer them: the last answer has the last
credit. :mod:`rtl.links` lists every stream with its source and target.
"""

from types import MappingProxyType, SimpleNamespace

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache import LocalCache, RemoteCache
from rtl.cache.access_tap import Access, AccessTap
from rtl.config import NicConfig
from rtl.control.axi_lite import AxiLite
from rtl.control.csr import RegisterBlock
from rtl.dedupe import DedupeTable
from rtl.delivery import IndexPackager, ShareDelivery
from rtl.formats import Beat, HostFrame, Opcode, Request
from rtl.interaction import (
    Concatenator,
    DenseRing,
    HoldBuffer,
    Interaction,
    PooledRouter,
    Pooler,
    ResultFrames,
    ResultPackager,
)
from rtl.links import join, links
from rtl.monitor.answers import AnswerCounter
from rtl.monitor.channels import channel_state
from rtl.network import (
    CreditCounter,
    FrameAssembler,
    FrameReceiver,
    LookupCheck,
    LookupReceiver,
    PacketMux,
    PacketParser,
    RecordPackager,
    VectorPackager,
    VectorRouter,
)
from rtl.network.link.receiver import LINK_RECEIVER_COUNTERS
from rtl.nic_bags import bag_blocks, bag_credits, bag_routers, connect_bags
from rtl.nic_control import control, watch
from rtl.nic_edges import guard_edges, report_state
from rtl.nic_link import await_deadline, connect_link, link_blocks
from rtl.nic_training import connect_training
from rtl.query import Dispatcher, HostReporter, QueryChecker
from rtl.reset import ResetBranch, reset_root
from rtl.rings import CompletionWriter, GpuRings, RingMessages, RowReads
from rtl.stream import Arbiter, StreamFIFO
from rtl.training import TrainingPath

__all__ = ["SmartNic"]

_EDGES = ("host_rx", "net_rx", "net_tx", "host_tx")
REQUEST_FIFO = 64
"""Lookups of this node that may wait for the dedupe table during a burst of a peer's lookups."""


class SmartNic(wiring.Component):
    """The whole SmartNIC (paper, figure 3), independent of the shell.

    Parameters: ``config``, a :class:`rtl.config.NicConfig`.

    Ports
    -----
    net_rx, net_tx: packets from and to the network, streams of :data:`rtl.formats.Beat`.
    host_rx, host_tx: packets from and to the host, the same shape.
    net_tx_bytes, host_tx_bytes: length of the packet whose beat is offered, for shells that need
        the length with the first beat.
    csr: AXI4-Lite, 32-bit data, see :class:`rtl.control.csr.RegisterBlock`.
    rst: reset, through the tree of :mod:`rtl.reset`; the only reset of the NIC, whose clock domain
        needs no other. From the cycle after its begin, and for :data:`rtl.reset.QUIET_CYCLES`
        cycles after its end, inputs are not ready. A reset completes a packet that it cuts at
        ``net_tx`` or ``host_tx``, and drops the rest of a packet at ``host_rx``
        (:mod:`rtl.network.reset_guards`). At ``net_rx`` the CRC rejects the rest of a packet.
    time: cycles, for timeouts; may jump while ``idle``.
    idle: a register: no input moved in the two cycles before, and nothing moves until an input
        does. Foreign frames at ``net_rx`` can keep it 0 for ever.
    swept: a register: every table has been swept since the reset. Only then does the NIC accept
        packets and table descriptors.
    working: a register: work of this NIC moves inside, or a packet of the host arrives. Frames at
        ``net_rx`` count after their check; register accesses do not count. It is 1 until ``swept``.
    tap: decision of a cache on each lookup, in order, stream of
        :data:`rtl.cache.access_tap.Access`; silent unless register ``tap_select`` names the cache.
    waits, deadline (``config.link``): while ``waits``, the NIC moves by itself when ``time`` is
        ``deadline``; ``time`` may jump up to it while ``idle``.
    channels: ``valid`` and ``ready`` of every stream between the blocks and at the edges, in the
        order of :func:`rtl.monitor.channels.channel_map`; registers show them a cycle later.

    Attribute ``registers`` lists the registers; ``blocks`` has the blocks by name.
    """

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self.config = config
        opcodes = {"training": config.training, "bags": config.owner_bags > 0}
        self._blocks = {
            "host_receiver": FrameReceiver(config, "host", **opcodes),
            "host_parser": PacketParser(config, "host", **opcodes),
            "net_receiver": FrameReceiver(config, config.net_framing, link=config.link, **opcodes),
            "net_parser": PacketParser(config, "network", **opcodes),
            "query_checker": QueryChecker(config),
            "delivery": ShareDelivery(config),
            "dispatcher": Dispatcher(config.nodes if config.training else 1,
                                     bags=config.owner_bags > 0,
                                     positions=config.repeat_positions),
            "remote_cache": RemoteCache(config),
            "lookup_packager": RecordPackager(
                config.nodes, config.net_payload_beats, Opcode.LOOKUPS, True,
                places=config.remote_in_flight),
            "lookup_receiver": LookupReceiver(config),
            "lookup_check": LookupCheck(config.tables),
            "dedupe": DedupeTable(config),
            "local_cache": LocalCache(config),
            "access_tap": AccessTap(),
            "request_packager": RecordPackager(
                1, config.net_payload_beats, Opcode.LOOKUP_REQUESTS, False, buffers=4),
            "vector_packager": VectorPackager(config),
            "hold_buffer": HoldBuffer(config),
            "pooler": Pooler(config),
            "result_packager": ResultPackager(config),
            "dense_ring": DenseRing(config),
            "concatenator": Concatenator(),
            "interaction": Interaction(config),
            "result_frames": ResultFrames(config),
            "index_packager": IndexPackager(config),
            "row_reads": RowReads(config.tables),
            "gpu_rings": GpuRings(),
            "ring_messages": RingMessages(),
            "completion_writer": CompletionWriter(config.completion_slots),
            "host_reporter": HostReporter(config),
            "net_assembler": FrameAssembler(config, config.net_framing, link=config.link),
            "host_assembler": FrameAssembler(config, "host"),
            "gpu_answers": AnswerCounter(),
            "dense_answers": AnswerCounter(),
            "peer_answers": AnswerCounter(),
        }
        if config.link:
            self._blocks |= link_blocks(config)
        if config.owner_bags:
            self._blocks |= bag_blocks(config)
        counters = {name: block.counters.shape() for name, block in self._blocks.items()
                    if hasattr(block, "counters")}
        if config.training:
            self._blocks["training_path"] = TrainingPath(config)
            counters |= self._blocks["training_path"].counters.shape().members
        if config.link:
            counters["link_receiver"] = LINK_RECEIVER_COUNTERS
        self._csr = RegisterBlock(config, counters)
        self.registers, self.blocks = self._csr.registers, MappingProxyType(self._blocks)
        super().__init__({
            "net_rx": In(stream.Signature(Beat)), "net_tx": Out(stream.Signature(Beat)),
            "host_rx": In(stream.Signature(Beat)), "host_tx": Out(stream.Signature(Beat)),
            "net_tx_bytes": Out(16), "host_tx_bytes": Out(16),
            "csr": self._csr.signature.members["csr"], "rst": In(1),
            "time": In(32), "idle": Out(1), "swept": Out(1), "working": Out(1),
            "tap": Out(stream.Signature(Access)),
            "channels": Out(channel_state(*config.optional)),
        } | ({"waits": Out(1), "deadline": Out(32)} if config.link else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        blocks = SimpleNamespace(**self._blocks)
        csr, own, requests = self._csr, StreamFIFO(Request, REQUEST_FIFO), Arbiter(Request, 2)
        router, pooled = VectorRouter(), PooledRouter()
        credits = CreditCounter(self.config.nodes, 2 + self.config.link)
        training, linked, bags, repeats = self.config.optional
        net_mux = PacketMux(2 + training + linked + 2 * bags)
        host_mux = PacketMux(8 + training + bags, HostFrame)
        parts = {**self._blocks, "request_fifo": own, "request_arbiter": requests,
                 "vector_router": router, "pooled_router": pooled, "net_mux": net_mux,
                 "host_mux": host_mux, **(bag_routers(self.config) if bags else {})}
        everything = {**parts, "csr_block": csr, "lookup_credits": credits}
        if bags:
            everything["bag_credits"] = bag_credits(self.config)
        root, quiet = reset_root(m, self.rst)
        branches = [ResetBranch(block, root) for block in everything.values()]
        for name, branch in zip(everything, branches):
            m.submodules[name] = branch
        guards = guard_edges(m, self, blocks, quiet)

        ends = {**everything, **{edge: getattr(self, edge) for edge in _EDGES},
                **{edge: guard.o if edge == "host_rx" else guard.i
                   for edge, guard in guards.items()}}
        for link in links(training, linked, bags, repeats):
            join(m, link, ends, held=quiet if link.source in _EDGES else None)
        m.d.comb += [
            blocks.net_parser.header.eq(blocks.net_receiver.header),
            blocks.dispatcher.next_landing.eq(blocks.hold_buffer.next_landing),
        ]
        for port, packager in enumerate((blocks.lookup_packager, blocks.vector_packager)):
            m.d.comb += [credits.node[port].eq(packager.credit_node),
                         packager.credit.eq(credits.value[port])]
        for packager in (blocks.request_packager, blocks.dense_ring, blocks.result_packager,
                         blocks.result_frames, blocks.index_packager, blocks.completion_writer,
                         blocks.gpu_rings):
            # Every packet to the host carries the credit of the queries consumed.
            m.d.comb += packager.credit.eq(blocks.query_checker.consumed)
        if training:
            connect_training(m, blocks)
        if bags:
            connect_bags(m, self.config, SimpleNamespace(**parts), everything["bag_credits"])
        if linked:
            connect_link(m, self.config, SimpleNamespace(**parts), csr, credits,
                         everything.get("bag_credits"))
        sent, leaves = host_mux.header_out, Signal()
        m.d.comb += [
            credits.freed.eq(blocks.lookup_check.freed),
            blocks.lookup_packager.credit_in.eq(
                blocks.link_credits.credit if self.config.link else blocks.net_parser.credit),
            blocks.host_reporter.consumed.eq(blocks.query_checker.consumed),
            leaves.eq(sent.valid & sent.ready), blocks.host_reporter.reported.valid.eq(leaves),
            blocks.host_reporter.reported.value.eq(sent.payload.credit),
            blocks.gpu_rings.read.eq(blocks.host_receiver.read),
            blocks.index_packager.step_end.eq(blocks.delivery.step_end),
            blocks.completion_writer.flushed.eq(blocks.ring_messages.flushed),
            blocks.completion_writer.freed.eq(blocks.ring_messages.freed),
        ]
        # Packets that left for the host before a FLUSH or a completion arrive before it.
        answered, failed = blocks.completion_writer.answered, blocks.completion_writer.error
        m.d.comb += [
            answered.valid.eq(leaves & (sent.payload.answers != 0)),
            answered.step.eq(sent.payload.step), answered.count.eq(sent.payload.answers),
            failed.valid.eq(leaves & (sent.payload.status != 0)),
            failed.step.eq(sent.payload.step), failed.status.eq(sent.payload.status),
        ]
        wiring.connect(m, blocks.access_tap.o, wiring.flipped(self.tap))
        _connect_csr(m, self.csr, csr.csr, quiet)
        control(m, self.config, csr, parts, self.time)
        watch(m, self.config, csr, parts, self)
        due = await_deadline(m, self, blocks) if self.config.link else 0
        report_state(m, self, {**everything, **guards}, branches, quiet, due)
        return m


def _connect_csr(m: Module, edge, port, quiet: Signal) -> None:
    """Connect the register port, without a handshake while ``quiet``."""
    for name, member in AxiLite.members.items():
        source, target = (edge, port) if member.flow == Out else (port, edge)
        taken = name in ("awvalid", "awready", "wvalid", "wready", "arvalid", "arready")
        value = getattr(source, name)
        m.d.comb += getattr(target, name).eq(value & ~quiet if taken else value)
