"""SmartNic: the blocks wired in the order in which data flows.

The path of a lookup (paper, figures 9 to 11)::

    host_rx -> host_parser -> query_checker -> dispatcher -+-> local lookups ------------------+
                    |                                      +-> remote_cache                    |
                    +-> GPU vectors -> local_cache.fills        | misses    ^ fills            |
                                                                v           |                  |
                                         net_tx <- lookup_packager          |                  |
    net_rx -> net_parser -+-> vectors --------------------------------------+                  |
                          +-> lookup_receiver -> lookup_check -> remote lookups -> requests <--+
    remote_cache: vectors -> hold_buffer                                              |
       dedupe <-----------------------------------------------------------------------+
         | misses                      ^ fills            | vectors
         v                             |                  v
       local_cache --------------------+            vector_router -+-> hold_buffer
         | misses                                                  +-> vector_packager -> net_tx
         v
       request_packager -> host_tx
    hold_buffer -> pooler -> result_packager -> host_tx

Why nothing can wait in a circle
--------------------------------
Every item that a peer or the host sends has a place that was reserved before it was asked for:
queries a beat of the query buffer (host credits), lookups a beat of the owner's receiver (credits
per requester), vectors of other nodes and of the GPU the landing row of their miss, from which they
go to places of the hold buffer that were reserved in sample order before the lookup left. So
``net_rx`` and ``host_rx`` are always accepted, and what remains are waits in one direction: queries
wait for places in the hold buffer, for miss ids of the remote cache and for room towards the
owners; lookups wait for entries, miss ids and scatter nodes; those are freed by vectors, which wait
for nothing but ``net_tx`` and ``host_tx``; and the edges always take what they are offered sooner
or later. The oldest sample of the ring holds all its places once it
has been dispatched, and a sample takes at most half of the ring, so places free up in order.
Lookup credits return in the headers of the vectors that answer them: the last answer carries the
last credit. :data:`rtl.channels.CHANNELS` names every stream, for whoever wants to see
who waits for whom.
"""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.access_tap import Access, AccessTap
from rtl.answers import AnswerCounter
from rtl.cache import LocalCache, RemoteCache
from rtl.channels import CHANNELS, ChannelProbe, ChannelState
from rtl.config import NicConfig
from rtl.csr import RegisterBlock
from rtl.dedupe import DedupeTable
from rtl.formats import Beat, LookupRecord, Opcode, Request
from rtl.interaction import HoldBuffer, Pooler, ResultPackager
from rtl.network import (
    CreditCounter,
    FrameAssembler,
    FrameParser,
    LookupCheck,
    LookupReceiver,
    PacketMux,
    RecordPackager,
    VectorPackager,
    VectorRouter,
)
from rtl.query import Dispatcher, HostReporter, QueryChecker
from rtl.stream import Arbiter, StreamFIFO

__all__ = ["SmartNic"]

REQUEST_FIFO = 64
"""Own lookups that may wait for the dedupe table while it serves a burst of a peer's."""

_DESCRIPTOR_PORTS = ("write_en", "write_table", "write_word", "write_data")


class SmartNic(wiring.Component):
    """The whole SmartNIC (paper, figure 3), shell neutral.

    Parameters: ``config``, a :class:`rtl.config.NicConfig`.

    Ports
    -----
    net_rx, net_tx: packets from and to the network, streams of :data:`rtl.formats.Beat`.
    host_rx, host_tx: packets from and to the host, the same shape.
    csr: AXI4-Lite, 32-bit data, see :class:`rtl.csr.RegisterBlock`.
    time: cycles, for time-outs; may jump while ``idle``.
    idle: nothing will move until an input does. After reset it is 0 until every table is swept,
        and only then the NIC takes packets and table descriptors.
    tap: what a cache decided on each lookup, in order, stream of
        :data:`rtl.access_tap.Access`; silent unless register ``tap_select`` names the cache.
    channels: ``valid`` and ``ready`` of every stream between the blocks and at the edges, in the
        order of :data:`rtl.channels.CHANNELS`; registers show them a cycle later.

    Attribute ``registers`` lists the registers.
    """

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self.config = config
        self._blocks = {
            "host_parser": FrameParser(config, "host"),
            "net_parser": FrameParser(config, "ethernet"),
            "query_checker": QueryChecker(config),
            "dispatcher": Dispatcher(),
            "remote_cache": RemoteCache(config),
            "lookup_packager": RecordPackager(
                config.nodes, config.net_payload_beats, Opcode.LOOKUPS, True),
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
            "host_reporter": HostReporter(config),
            "net_assembler": FrameAssembler(config, "ethernet"),
            "host_assembler": FrameAssembler(config, "host"),
            "gpu_answers": AnswerCounter(),
            "peer_answers": AnswerCounter(),
        }
        self._csr = RegisterBlock(config, {
            name: block.counters.shape() for name, block in self._blocks.items()})
        self.registers = self._csr.registers
        super().__init__({
            "net_rx": In(stream.Signature(Beat)), "net_tx": Out(stream.Signature(Beat)),
            "host_rx": In(stream.Signature(Beat)), "host_tx": Out(stream.Signature(Beat)),
            "csr": self._csr.signature.members["csr"],
            "time": In(32), "idle": Out(1),
            "tap": Out(stream.Signature(Access)), "channels": Out(ChannelState),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        blocks = SimpleNamespace(**self._blocks)
        for name, block in self._blocks.items():
            m.submodules[name] = block
        m.submodules.csr_block = csr = self._csr
        m.submodules.request_fifo = own = StreamFIFO(Request, REQUEST_FIFO)
        m.submodules.request_arbiter = requests = Arbiter(Request, 2)
        m.submodules.vector_router = router = VectorRouter()
        m.submodules.lookup_credits = credits = CreditCounter(self.config.nodes, 2)
        m.submodules.net_mux = net_mux = PacketMux(2)
        m.submodules.host_mux = host_mux = PacketMux(3)

        # Arrival: packets checked whole, taken apart.
        wiring.connect(m, wiring.flipped(self.host_rx), blocks.host_parser.i)
        wiring.connect(m, wiring.flipped(self.net_rx), blocks.net_parser.i)
        # Requester: samples to slots, slots to places and lookups.
        wiring.connect(m, blocks.host_parser.records, blocks.query_checker.i)
        wiring.connect(m, blocks.query_checker.o, blocks.dispatcher.i)
        wiring.connect(m, blocks.dispatcher.reserve, blocks.hold_buffer.reserve)
        m.d.comb += blocks.dispatcher.next_landing.eq(blocks.hold_buffer.next_landing)
        wiring.connect(m, blocks.dispatcher.local, own.i)
        wiring.connect(m, blocks.dispatcher.remote, blocks.remote_cache.lookups)
        wiring.connect(m, blocks.remote_cache.misses, blocks.lookup_packager.i)
        # Owner: own and received lookups through dedupe table and local cache.
        wiring.connect(m, blocks.net_parser.records, blocks.lookup_receiver.i)
        wiring.connect(m, blocks.lookup_receiver.o, blocks.lookup_check.i)
        wiring.connect(m, own.o, requests.i[0])
        wiring.connect(m, blocks.lookup_check.o, requests.i[1])
        wiring.connect(m, requests.o, blocks.dedupe.requests)
        lookup, miss = blocks.local_cache.lookups, blocks.dedupe.misses
        m.d.comb += [
            lookup.valid.eq(miss.valid), miss.ready.eq(lookup.ready),
            lookup.payload.key.eq(miss.payload.key), lookup.payload.meta.eq(miss.payload.id),
        ]
        found, fill = blocks.local_cache.vectors, blocks.dedupe.fills
        m.d.comb += [
            fill.valid.eq(found.valid), found.ready.eq(fill.ready),
            fill.payload.id.eq(found.payload.meta), fill.payload.data.eq(found.payload.data),
            fill.payload.last.eq(found.payload.last),
        ]
        # GPU: what the local cache misses leaves in lists and comes back by miss id.
        wanted, listed = blocks.local_cache.misses, blocks.request_packager.i
        record = Signal(LookupRecord)
        m.d.comb += [
            listed.valid.eq(wanted.valid), wanted.ready.eq(listed.ready),
            record.row.eq(wanted.payload.key.row), record.table.eq(wanted.payload.key.table),
            record.landing.eq(wanted.payload.id), listed.payload.record.eq(record),
        ]
        fetched, landed = blocks.host_parser.vectors, blocks.local_cache.fills
        m.d.comb += [
            landed.valid.eq(fetched.valid), fetched.ready.eq(landed.ready),
            landed.payload.id.eq(fetched.payload.tag), landed.payload.data.eq(fetched.payload.data),
            landed.payload.last.eq(fetched.payload.last),
        ]
        # Vectors to their requesters, and into the places reserved for them.
        wiring.connect(m, blocks.dedupe.vectors, router.i)
        wiring.connect(m, router.local, blocks.hold_buffer.local)
        wiring.connect(m, router.remote, blocks.vector_packager.i)
        wiring.connect(m, blocks.net_parser.vectors, blocks.remote_cache.fills)
        wiring.connect(m, blocks.remote_cache.vectors, blocks.hold_buffer.remote)
        # Results.
        wiring.connect(m, blocks.hold_buffer.o, blocks.pooler.i)
        wiring.connect(m, blocks.pooler.o, blocks.result_packager.i)
        wiring.connect(m, blocks.query_checker.errors, blocks.host_reporter.errors)
        wiring.connect(m, blocks.host_parser.refused, blocks.host_reporter.refused)
        # Departure.
        for port, packager in enumerate((blocks.lookup_packager, blocks.vector_packager)):
            _depart(m, packager, net_mux, port)
            m.d.comb += [credits.node[port].eq(packager.credit_node),
                         packager.credit.eq(credits.value[port])]
        for port, packager in enumerate((blocks.request_packager, blocks.result_packager,
                                         blocks.host_reporter)):
            _depart(m, packager, host_mux, port)
        for mux, assembler, edge in ((net_mux, blocks.net_assembler, self.net_tx),
                                     (host_mux, blocks.host_assembler, self.host_tx)):
            wiring.connect(m, mux.header_out, assembler.headers)
            wiring.connect(m, mux.payload_out, assembler.payload)
            wiring.connect(m, assembler.o, wiring.flipped(edge))
        sent = host_mux.header_out
        m.d.comb += [
            credits.freed.eq(blocks.lookup_check.freed),
            blocks.lookup_packager.credit_in.eq(blocks.net_parser.credit),
            # Every packet to the host carries the credit of the queries consumed.
            blocks.request_packager.credit.eq(blocks.query_checker.consumed),
            blocks.result_packager.credit.eq(blocks.query_checker.consumed),
            blocks.host_reporter.consumed.eq(blocks.query_checker.consumed),
            blocks.host_reporter.reported.valid.eq(sent.valid & sent.ready),
            blocks.host_reporter.reported.value.eq(sent.payload.credit),
        ]
        m.d.comb += blocks.access_tap.event.eq(Mux(
            self._csr.tap_select == 2, blocks.remote_cache.tap, blocks.local_cache.tap))
        wiring.connect(m, blocks.access_tap.o, wiring.flipped(self.tap))
        self._control(m, blocks, router)
        self._watch(m, blocks, {
            "request_fifo": own, "request_arbiter": requests, "vector_router": router,
            "net_mux": net_mux, "host_mux": host_mux})
        glue = (csr, own, requests, router, credits, net_mux, host_mux)
        m.d.comb += self.idle.eq(
            Cat(block.idle for block in (*self._blocks.values(), *glue)).all())
        return m

    def _watch(self, m: Module, blocks: SimpleNamespace, glue: dict) -> None:
        """What shows where a NIC stands: its streams, and what others owe it."""
        parts = {**self._blocks, **glue}
        streams = {}
        for name in CHANNELS:
            part, _, port = name.partition(".")
            streams[name] = getattr(parts[part], port) if port else getattr(self, part)
        m.submodules.channel_probe = probe = ChannelProbe(streams)
        wiring.connect(m, probe.now, wiring.flipped(self.channels))
        wiring.connect(m, probe.kept, self._csr.channels)
        m.d.comb += self._csr.lookup_next_node.eq(blocks.lookup_packager.next_node)
        for answers, asking in ((blocks.gpu_answers, blocks.local_cache),
                                (blocks.peer_answers, blocks.remote_cache)):
            m.d.comb += [answers.asked.eq(asking.misses.valid & asking.misses.ready),
                         answers.answered.eq(asking.landed)]

    def _control(self, m: Module, blocks: SimpleNamespace, router: VectorRouter) -> None:
        """Registers to blocks, counters to registers."""
        csr = self._csr
        wiring.connect(m, wiring.flipped(self.csr), csr.csr)
        packing = Signal(2)  # longer vectors have beats of their own
        m.d.comb += packing.eq(Mux(csr.vector_beats == 1, csr.vector_packing, 0))
        for block in (*self._blocks.values(), router):
            for name in ("node", "nodes", "vector_beats", "mac_base", "ip_base", "udp_port"):
                if hasattr(block, name):
                    m.d.comb += getattr(block, name).eq(getattr(csr, name))
            if hasattr(block, "vector_packing"):
                m.d.comb += block.vector_packing.eq(packing)
            if hasattr(block, "time"):
                m.d.comb += block.time.eq(self.time)
        for block in (blocks.query_checker, blocks.lookup_check):
            m.d.comb += [getattr(block, name).eq(getattr(csr, f"table_{name}"))
                         for name in _DESCRIPTOR_PORTS]
        m.d.comb += [
            blocks.dedupe.enable.eq(csr.dedupe_enable), blocks.dedupe.step_floor.eq(csr.step_floor),
            blocks.pooler.mean.eq(csr.pooling_mean),
            blocks.local_cache.enable.eq(csr.local_cache_enable),
            blocks.access_tap.enable.eq(csr.tap_select != 0),
            blocks.local_cache.sets.eq(csr.local_cache_sets),
            blocks.remote_cache.enable.eq(csr.remote_cache_enable),
            blocks.remote_cache.sets.eq(csr.remote_cache_sets),
            blocks.remote_cache.merge.eq(csr.requester_merge),
            blocks.request_packager.batch.eq(csr.request_batch),
            blocks.request_packager.timeout.eq(csr.request_timeout),
            # Lookups go out in packets as full as they get.
            blocks.lookup_packager.batch.eq(8 * self.config.net_payload_beats),
            blocks.lookup_packager.timeout.eq(csr.lookup_timeout),
            blocks.lookup_packager.window.eq(csr.lookup_window),
            blocks.lookup_receiver.share.eq(csr.lookup_share),
            blocks.vector_packager.timeout.eq(csr.vector_timeout),
            csr.table_ready.eq(blocks.query_checker.write_ready & blocks.lookup_check.write_ready),
        ]
        for name, block in self._blocks.items():
            m.d.comb += csr.counters[name].eq(block.counters)


def _depart(m: Module, packager, mux: PacketMux, port: int) -> None:
    wiring.connect(m, packager.headers, mux.headers[port])
    wiring.connect(m, packager.payload, mux.payload[port])
