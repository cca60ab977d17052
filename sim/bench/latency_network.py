"""Latencies of the network blocks, see :mod:`sim.bench.latency`."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from host.wire.packets import header_beat
from rtl.config import NicConfig
from rtl.formats import Opcode
from rtl.network import (
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
from sim.bench.probe import Latency, Probe, Push
from sim.nic.ports import with_framing

__all__ = ["NETWORK_CASES"]

_ADDRESSES = {"mac_base": 0x02454D420000, "ip_base": 0x0A450000, "udp_port": 0x4853}


@lru_cache(maxsize=2)
def _assembler(config: NicConfig) -> Probe:
    """Return the assembler of node 1, which makes frames for the receiver of node 0."""
    return Probe(FrameAssembler(config), node=1, **_ADDRESSES)


def _packet(config: NicConfig, opcode: Opcode, beats: int) -> tuple[Push, ...]:
    """Return the header and payload of a packet to node 0 with one record or vector."""
    probe = _assembler(config)
    return (probe.push("headers", opcode=int(opcode), destination=0, count=1),
            *(probe.push("payload", last=int(k == beats - 1), after=10 + k)
              for k in range(beats)))


def _frame_assembler(config: NicConfig) -> list[Latency]:
    return [_assembler(config).latency(
        "last payload beat of a packet", "its header beat", "o",
        *_packet(config, Opcode.LOOKUPS, 1))]


def _frame(config: NicConfig, opcode: Opcode, beats: int) -> np.ndarray:
    frame, _ = _assembler(config).drive("o", *_packet(config, opcode, beats))
    if len(frame) != beats + 1:
        raise RuntimeError(f"the assembler made {len(frame)} beats, not {beats + 1}")
    return frame


def _frame_receiver(config: NicConfig) -> list[Latency]:
    probe = Probe(FrameReceiver(config), node=0, nodes=2, vector_beats=1, **_ADDRESSES)
    frame = _frame(config, Opcode.LOOKUPS, 1)
    return [probe.latency("last beat of a frame", "its header beat", "o",
                          *(Push("i", frame[k:k + 1], k) for k in range(len(frame))))]


def _host_receiver(config: NicConfig) -> list[Latency]:
    probe = Probe(FrameReceiver(config, "host"), vector_beats=1)
    packet = np.concatenate([header_beat(Opcode.QUERIES, node=0, step=0, count=1),
                             np.zeros((1, 16), np.uint32)])
    beats = with_framing(packet)
    return [probe.latency(
        "last beat of a packet of the host", "its header beat", "o",
        Push("i", beats[:1]), Push("i", beats[1:], 1))]


def _packet_parser(config: NicConfig) -> list[Latency]:
    def measured(end: str, port: str, opcode: Opcode, beats: int, **signals: int) -> Latency:
        probe = Probe(PacketParser(config), vector_beats=1, **signals)
        header = int.from_bytes(header_beat(opcode, node=0, step=0, count=1).tobytes(), "little")
        # Counted from the header beat, the rest of the packet behind it.
        _, cycles = probe.drive(port, probe.push("i", item=header), *(
            probe.push("i", last=int(k == beats), after=k) for k in range(1, beats + 1)))
        return probe.with_stated("header beat", end, beats + int(cycles[0]))

    return [
        measured("first record", "records", Opcode.LOOKUPS, 1),
        measured("first vector beat", "vectors", Opcode.VECTORS, 2),
        measured("first vector beat, where beats hold several vectors", "vectors", Opcode.VECTORS,
                 2, vector_packing=1)]


def _record_packager(config: NicConfig) -> list[Latency]:
    found = []
    for credited in (False, True):
        def record(probe: Probe) -> Push:
            return probe.push("i", destination=1)

        probe = Probe(
            RecordPackager(config.nodes, config.net_payload_beats, Opcode.LOOKUPS, credited),
            batch=1, timeout=0xFFFF, **({"window": 64} if credited else {}))
        start = "record that fills a packet" + (", with credits" if credited else "")
        found += [
            probe.latency(start, "header", "headers", record(probe)),
            probe.latency(start, "first beat", "payload", record(probe))]
    probe = Probe(RecordPackager(config.nodes, config.net_payload_beats, Opcode.LOOKUPS, True,
                                 places=config.remote_in_flight),
                  batch=1, timeout=0xFFFF, window=64, queued=1)
    return [*found, probe.latency("record that fills a packet, with queues", "header", "headers",
                                  probe.push("i", destination=1))]


def _vector_packager(config: NicConfig) -> list[Latency]:
    probe = Probe(VectorPackager(config), vector_beats=1, timeout=0xFFFF)

    def packet() -> list[Push]:
        return [probe.push("i", tag__node=1, last=1, after=k)
                for k in range(min(32, config.net_payload_beats - 1))]

    start = "vector that fills a packet"
    return [
        probe.latency(start, "header", "headers", *packet()),
        probe.latency(start, "tag beat", "payload", *packet())]


def _packet_mux(config: NicConfig) -> list[Latency]:
    probe = Probe(PacketMux(2))
    turn = probe.latency("header", "its first payload beat", "payload_out",
                         probe.push("payload__1", last=1),
                         probe.push("headers__1", opcode=1, after=1), taken=1)
    return [
        turn,
        probe.latency("header", "the same header", "header_out",
                      probe.push("headers__1", opcode=1), taken=1),
        probe.latency("payload beat of that header", "the same beat", "payload_out",
                      probe.push("payload__1", last=1))]


def _lookup_receiver(config: NicConfig) -> list[Latency]:
    probe = Probe(LookupReceiver(config), share=8)
    return [probe.latency("beat of records", "first request", "o",
                          probe.push("i", records=1, source=1, last=1))]


def _lookup_check(config: NicConfig) -> list[Latency]:
    probe = Probe(LookupCheck(config.tables), node=0, nodes=2)
    probe.load_table()
    return [probe.latency("lookup", "request", "o", probe.push("i", beat_last=1))]


def _vector_router(config: NicConfig) -> list[Latency]:
    probe = Probe(VectorRouter(), node=0)
    return [
        probe.latency("vector beat", "own hold buffer", "local", probe.push("i", last=1)),
        probe.latency("vector beat", "network", "remote",
                      probe.push("i", tag__node=1, last=1))]


NETWORK_CASES: dict[str, Callable[[NicConfig], list[Latency]]] = {
    "LookupReceiver": _lookup_receiver, "LookupCheck": _lookup_check,
    "VectorRouter": _vector_router, "RecordPackager": _record_packager,
    "VectorPackager": _vector_packager, "PacketMux": _packet_mux,
    "FrameAssembler": _frame_assembler, "FrameReceiver": _frame_receiver,
    "FrameReceiver of the host": _host_receiver, "PacketParser": _packet_parser,
}
"""For each network block, the function that measures its latencies for a configuration."""
