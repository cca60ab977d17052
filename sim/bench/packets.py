"""Rate of outgoing packets of one size (packager and frame assembler) against 100 Gb/s."""

from dataclasses import dataclass

import numpy as np

from host.timing.clock import CYCLE_NS
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from host.wire.layouts import pack
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, VectorBeat
from sim.bench.rate_paths import PacketPath
from sim.bench.rates import settle
from sim.engines import load
from sim.nic.ports import LAST_BIT

__all__ = ["PacketRate", "packet_rate", "packet_size"]

_FRAME_HEADERS = 42
"""Bytes of Ethernet, IPv4 and UDP headers before the UDP payload."""


def packet_size(vectors: int) -> int:
    """Return the bytes of UDP payload of a packet of ``vectors`` one-beat vectors, including the
    22-byte EmberNIC header and the tag beat."""
    return BEAT_BYTES - _FRAME_HEADERS + BEAT_BYTES * (1 + vectors)


@dataclass(frozen=True)
class PacketRate:
    """Packets sent: their number, the UDP payload of each in bytes, and the cycles they took."""

    packets: int
    payload: int
    cycles: int
    gbit_s: float
    overhead: int

    @property
    def goodput(self) -> float:
        """UDP payload in Gb/s at 250 MHz."""
        return 8 * self.payload * self.packets / (self.cycles * CYCLE_NS)

    @property
    def share(self) -> float:
        """Goodput as a share of the link's limit at this size, p / (p + overhead)."""
        return self.goodput / (self.gbit_s * self.payload / (self.payload + self.overhead))


def packet_rate(config: NicConfig, vectors: int, packets: int = 4096, *, link: bool = True,
                engine: str = "verilator") -> PacketRate:
    """Return the rate of packets of ``vectors`` vectors each, of one beat each.

    Requesters take turns, each with the vectors of one packet. Packets below the limit of
    ``config`` are closed by the time-out. For packets of one vector the limit itself is one,
    because time-outs close at most one packet every two cycles. ``link``: whether the sink takes
    frames at the rate of 100 Gb/s Ethernet (preamble, check sequence and gap included); otherwise
    it takes a beat in every cycle. ``RuntimeError`` if a packet has another size.
    """
    if vectors == 1:
        config = config.with_fields(name=f"{config.name}_single", net_payload_beats=2)
    profile = load_profile("ethernet_100g_direct", NetworkProfile)
    running = load(PacketPath(config), f"packet_path_{config.name}", engine,
                   recipe=f"PacketPath({config!r})").instance()
    running.set_signal("vector_beats", 1)
    # A requester's vectors all arrive within 1.5 times as many cycles. Its next ones arrive after
    # the turns of all others: by then the time-out has closed its packet.
    running.set_signal("timeout", vectors * 3 // 2 if vectors < config.net_vectors else 0xFFFF)
    if link:
        cycles_per_byte = 8 / (profile.bandwidth_gbit_s * CYCLE_NS)
        running.set_rate("o", cycles_per_beat=BEAT_BYTES * cycles_per_byte,
                         cycles_per_packet=profile.overhead_bytes * cycles_per_byte,
                         last_bit=LAST_BIT)
    start = settle(running)
    order = np.arange(packets * vectors)
    running.push("i", pack(VectorBeat, len(order), tag__landing=order % 4096, last=1,
                           tag__node=order // vectors % config.nodes), start)
    ends: list[int] = []
    sizes: list[int] = []
    rest = 0
    limit = start + 64 * len(order) + 100_000
    while len(ends) < packets:
        if running.cycle > limit:
            raise RuntimeError(f"{len(ends)} of {packets} packets after {limit - start} cycles")
        running.run(running.cycle + 512)
        beats, cycles = running.pop("o")
        last = np.flatnonzero(beats[:, LAST_BIT // 32] >> LAST_BIT % 32 & 1)
        ends += cycles[last].tolist()
        sizes += np.diff(np.concatenate(([-1 - rest], last))).tolist()
        rest = len(beats) - 1 - int(last[-1]) if len(last) else rest + len(beats)
    if set(sizes) != {vectors + 2}:
        raise RuntimeError(f"packets of {min(sizes)} to {max(sizes)} beats, not {vectors + 2}")
    return PacketRate(packets, packet_size(vectors), ends[-1] + 1 - start,
                      profile.bandwidth_gbit_s, profile.overhead_bytes + _FRAME_HEADERS)
