"""Packets between ends of reliable links, through a network with faults."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from host.timing.clock import CYCLE_NS
from host.timing.network import Network, NetworkProfile
from host.wire.layouts import field_bits, pack, word_count
from rtl.config import NicConfig, preset
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT, FrameInfo, Opcode, RawBeat
from rtl.network.layouts import PacketBeat
from rtl.network.link.receiver import LINK_RECEIVER_COUNTERS
from rtl.network.link.sender import LINK_SENDER_COUNTERS
from rtl.network.wire import UDP_LENGTH
from sim.engines import Engine, Model, load
from sim.faults.ends import LinkEnd
from sim.host_cpp.exchange import CompiledExchange
from sim.job.fault_plan import FaultPlan
from sim.job.frame_faults import rule_of
from sim.job.settings import Runtime
from sim.nic.ports import LAST_BIT

__all__ = ["GBIT_S", "OVERHEAD_BYTES", "PATTERNS", "LinkSettings", "LinkTraffic", "counts",
           "link_ends", "network_of", "payload_bytes", "run_to_rest", "send_packets", "transfer"]

PATTERNS = ("one way", "both ways", "all to all", "incast")
"""Senders and receivers: node 0 to 1; both of two; every node to every other; all to node 0."""

OVERHEAD_BYTES, GBIT_S = 24, 100.0
_START, _LIMIT_S = 64, 1.0
_PACKET = 1 << 20
"""Bound on the packets of a sender; a packet's number identifies it."""
_LAYOUTS = {"sent": LINK_SENDER_COUNTERS, "received": LINK_RECEIVER_COUNTERS}
_LAST_BIT = PacketBeat["last"].offset


@dataclass(frozen=True)
class LinkSettings:
    """Registers of the link, as in :class:`sim.job.settings.Runtime`."""

    delay: int = Runtime.link_delay
    timeout_first: int = Runtime.link_timeout_first
    timeout_least: int = Runtime.link_timeout_least
    timeout_most: int = Runtime.link_timeout_most
    tries: int = Runtime.link_tries


@dataclass(frozen=True)
class LinkTraffic:
    """Packets to send, and the network.

    Members
    -------
    packets: packets of each sender to each receiver.
    beats: payload beats of a packet, 1 to 22; several values are used in turn.
    pattern: one of :data:`PATTERNS`.
    nodes: nodes of the network; link ends are built for at least 8.
    round_trip_us: round trip of the network, twice its latency.
    queue_bytes: room of each output of the switch; None for unlimited.
    faults: faults as in ``sim run --faults``.
    seed: seed of the faults.
    first_sequence: number of the first packet to each node.
    settings: settings of the links.
    """

    packets: int
    beats: tuple[int, ...] = (22,)
    pattern: str = "one way"
    nodes: int = 2
    round_trip_us: float = 3.0
    queue_bytes: int | None = None
    faults: str | None = None
    seed: int = 1
    first_sequence: int = 0
    settings: LinkSettings = LinkSettings()

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, not {self.pattern!r}")
        if not 1 <= self.packets < _PACKET:
            raise ValueError(f"packets must be between 1 and {_PACKET - 1}, not {self.packets!r}")

    @property
    def flows(self) -> list[tuple[int, int]]:
        """Pairs of sender and receiver, in the order of sending."""
        if self.pattern == "one way":
            return [(0, 1)]
        if self.pattern == "both ways":
            return [(0, 1), (1, 0)]
        if self.pattern == "incast":
            return [(source, 0) for source in range(1, self.nodes)]
        return [(source, (source + turn) % self.nodes) for source in range(self.nodes)
                for turn in range(1, self.nodes)]


def payload_bytes(beats: int) -> int:
    """Return the UDP payload in bytes of a packet with ``beats`` payload beats."""
    return UDP_LENGTH - 8 + beats * BEAT_BYTES


def transfer(traffic: LinkTraffic) -> dict:
    """Send the packets and return the result.

    sent, delivered: packets.
    doubled, changed: packets admitted more than once; packets with changed contents.
    goodput: least share of the wire's rate that is UDP payload, over the receivers, while the
        middle four fifths of a receiver's packets arrive.
    cycles: cycles until the last packet arrives.
    frames, repeated, links: frames on the wire; retransmissions and LINK packets among them.
    injected, full: faults; frames that a full queue dropped.
    given_up: peers given up.
    counters: counters of each node.
    over: whether all packets arrived, or their peers were given up, within a second.
    """
    engines = link_ends(traffic)
    network = network_of(traffic)
    exchange = CompiledExchange(engines, network)
    plan = FaultPlan.of(traffic.faults, traffic.nodes, traffic.seed)
    exchange.inject([rule_of(fault, _START) for fault in plan.frames], plan.seed)
    for engine in engines:
        engine.set_rate("net_tx", cycles_per_beat=BEAT_BYTES * network.cycles_per_byte,
                        cycles_per_packet=network.overhead_cycles, last_bit=LAST_BIT, burst=64)
    sent = send_packets(traffic, engines)
    came = run_to_rest(engines, exchange, network)
    return _outcome(traffic, engines, exchange, network, sent, came)


def network_of(traffic: LinkTraffic) -> Network:
    """Return the network of a transfer."""
    return Network(NetworkProfile(
        "cables", traffic.round_trip_us / 2, GBIT_S, OVERHEAD_BYTES, True,
        traffic.queue_bytes), traffic.nodes)


@lru_cache(maxsize=4)
def _model(config: NicConfig, first_sequence: int) -> Model:
    return load(LinkEnd(config, first_sequence), "link_end", "verilator",
                recipe=f"LinkEnd({config!r}, {first_sequence})")


def link_ends(traffic: LinkTraffic) -> list[Engine]:
    """Return a link end per node, after reset and with its registers set."""
    tiny = preset("tiny")
    model = _model(tiny.with_fields(link=True, nodes=max(tiny.nodes, traffic.nodes)),
                   traffic.first_sequence)
    engines: list[Engine] = [model.instance() for _ in range(traffic.nodes)]
    for number, engine in enumerate(engines):
        engine.set_signal("node", number)
        engine.set_signal("nodes", traffic.nodes)
        for name, value in vars(traffic.settings).items():
            engine.set_signal(name, value)
    now = _START
    while not all(engine.get_signal("idle") for engine in engines):
        now += _START
        for engine in engines:
            engine.run(now)
    for engine in engines:
        engine.run(now)
    return engines


def send_packets(traffic: LinkTraffic, engines: Sequence[Engine],
                 only: int | None = None, first: int = 0) -> Counter[tuple[int, int]]:
    """Queue all packets at their senders, or at the sender ``only``; return packets by flow.

    first: number of the first packet; distinguishes the packets of several calls.
    """
    counted, beat_words = field_bits(FrameInfo)["count"][0], word_count(RawBeat)
    last_word, last_bit = divmod(field_bits(RawBeat)["last"][0], 32)
    sizes = np.resize(np.array(traffic.beats), traffic.packets)
    for source, engine in enumerate(engines):
        targets = [target for sender, target in traffic.flows
                   if sender == source and only in (None, source)]
        if not targets:
            continue
        # Packet by packet to each receiver in turn.
        to, beats = np.tile(targets, traffic.packets), np.repeat(sizes, len(targets))
        numbers = np.repeat(first + np.arange(traffic.packets), len(targets))
        headers = pack(FrameInfo, len(to), opcode=int(Opcode.LOOKUPS), destination=to)
        headers[:, counted // 32] |= (RECORDS_PER_BEAT * beats << counted % 32).astype(np.uint32)
        starts = np.cumsum(beats) - beats
        payload = np.zeros((beats.sum(), beat_words), np.uint32)
        payload[:, 0] = np.repeat(source * _PACKET + numbers, beats)
        payload[:, 1] = np.arange(len(payload)) - np.repeat(starts, beats)
        payload[starts + beats - 1, last_word] |= np.uint32(1 << last_bit)
        engine.push("headers", headers, engine.cycle + 1)
        engine.push("payload", payload, engine.cycle + 1)
    return Counter({flow: traffic.packets for flow in traffic.flows})


def run_to_rest(engines: Sequence[Engine], exchange: CompiledExchange, network: Network,
                until: float = inf) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Run until traffic ends, at most a second or to cycle ``until``; return beats and cycles of
    arrival per node."""
    came: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in engines]
    now, limit = engines[0].cycle, min(until, _LIMIT_S * 1e9 / CYCLE_NS)
    while now < limit:
        events = [engine.next_event for engine in engines]
        soonest = min(min(inf if event is None else event for event in events),
                      exchange.next_event)
        if soonest == inf:
            break
        now = int(soonest) + network.lookahead
        for engine in engines:
            engine.run(now)
        exchange.step(now)
        for node, engine in enumerate(engines):
            beats, cycles = engine.pop("o")
            if len(beats):
                came[node].append((beats, cycles))
    return came


def _outcome(traffic: LinkTraffic, engines: Sequence[Engine], exchange: CompiledExchange,
             network: Network, sent: Counter[tuple[int, int]], came: list) -> dict:
    found: Counter[tuple[int, int, int]] = Counter()
    changed, last, shares = 0, 0, []
    for node, parts in enumerate(came):
        if not parts:
            continue
        beats = np.concatenate([part[0] for part in parts])
        cycles = np.concatenate([part[1] for part in parts])
        ends = (beats[:, _LAST_BIT // 32] >> np.uint32(_LAST_BIT % 32) & 1).nonzero()[0]
        starts = np.concatenate(([0], ends[:-1] + 1))
        # Behind each header: sender and number of the packet, and the order of its beats.
        names, places = beats[:, 0], beats[:, 1]
        sizes = ends - starts
        wanted = np.arange(len(beats)) - np.repeat(starts, sizes + 1) - 1
        inside = wanted >= 0
        same = (names == np.repeat(names[ends], sizes + 1)) & (places == wanted) | ~inside
        whole = np.logical_and.reduceat(same, starts)
        lengths = np.resize(np.array(traffic.beats), traffic.packets)[
            names[ends] % _PACKET % traffic.packets]
        changed += int((~(whole & (sizes == lengths))).sum())
        found.update((int(name) // _PACKET, node, int(name) % _PACKET) for name in names[ends])
        last = max(last, int(cycles[-1]))
        shares.append(_goodput(cycles[ends], sizes, network))
    counters = [{"sent": counts(engine, "sent"), "received": counts(engine, "received")}
                for engine in engines]
    return {
        "sent": sum(sent.values()), "delivered": len(found),
        "doubled": sum(found.values()) - len(found), "changed": changed,
        "goodput": min(shares, default=0.0), "cycles": last - _START,
        "frames": exchange.frames, "full": exchange.full_frames,
        "repeated": sum(node["sent"]["repeated"] for node in counters),
        "links": sum(node["sent"]["links"] for node in counters),
        "injected": sum(exchange.injected.values()),
        "given_up": sum(int(engine.get_signal("given_up")) for engine in engines),
        "over": all(engine.at_rest for engine in engines), "counters": counters,
    }


def _goodput(ends: np.ndarray, sizes: np.ndarray, network: Network) -> float:
    """Return the payload's share of the wire's rate, without the first and the last tenth of the
    packets."""
    tenth = len(ends) // 10
    if len(ends) < 20:
        return 0.0
    bytes_of = sizes[tenth + 1:len(ends) - tenth] * BEAT_BYTES + payload_bytes(0)
    taken = float(ends[len(ends) - tenth - 1] - ends[tenth])
    return float(bytes_of.sum() * network.cycles_per_byte / taken)


def counts(engine: Engine, side: str) -> dict[str, int]:
    value, layout = engine.get_signal(side), _LAYOUTS[side]
    return {name: value >> field.offset & (1 << field.width) - 1 for name, field in layout}
