"""Connections between the register block of a SmartNIC and its other blocks."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.formats import InteractionMode
from rtl.monitor.channels import ChannelProbe, channel_map

__all__ = ["control", "watch"]

_DESCRIPTOR_PORTS = ("write_en", "write_table", "write_word", "write_data")
_PORTS = ("node", "nodes", "vector_beats", "mac_base", "ip_base", "udp_port")
"""Registers that drive the port of the same name in every block that has one."""
_TRAINING_PORTS = (
    "pooling_mean", "local_reduction", "gradient_partials", "optimizer", "learning_rate",
    "epsilon", "gradient_timeout", "gradient_window", "gradient_share", "request_batch",
    "request_timeout")
"""The same for the registers of the gradient path."""


def control(m: Module, config: NicConfig, csr: RegisterBlock, parts: dict, time: Signal) -> None:
    """Connect registers to ``parts``, the blocks of the NIC by name, and counters to registers."""
    blocks = SimpleNamespace(**parts)
    packing, interact = Signal(2), Signal()
    m.d.comb += [
        # Longer vectors do not share beats.
        packing.eq(Mux(csr.vector_beats == 1, csr.vector_packing, 0)),
        interact.eq(csr.interaction_mode != InteractionMode.OFF),
    ]
    for block in parts.values():
        for name in _PORTS:
            if hasattr(block, name):
                m.d.comb += getattr(block, name).eq(getattr(csr, name))
        for name, value in (("vector_packing", packing), ("interact", interact), ("time", time)):
            if hasattr(block, name):
                m.d.comb += getattr(block, name).eq(value)
    keepers = [blocks.query_checker, blocks.lookup_check]
    if config.training:
        keepers.append(blocks.training_path)
        m.d.comb += [getattr(blocks.training_path, name).eq(getattr(csr, name))
                     for name in _TRAINING_PORTS]
        m.d.comb += [blocks.dispatcher.training.eq(csr.training),
                     blocks.query_checker.training.eq(csr.training),
                     blocks.dispatcher.overtake.eq(csr.overtake)]
    for block in keepers:
        m.d.comb += [getattr(block, name).eq(getattr(csr, f"table_{name}"))
                     for name in _DESCRIPTOR_PORTS]
    for requests in (blocks.request_packager, blocks.dense_ring):
        m.d.comb += [requests.batch.eq(csr.request_batch),
                     requests.timeout.eq(csr.request_timeout)]
    m.d.comb += [
        blocks.dedupe.enable.eq(csr.dedupe_enable), blocks.dedupe.step_floor.eq(csr.step_floor),
        blocks.pooler.mean.eq(csr.pooling_mean),
        blocks.interaction.dots.eq(csr.interaction_mode == InteractionMode.DOT),
        blocks.interaction.itself.eq(csr.interaction_itself),
        blocks.local_cache.enable.eq(csr.local_cache_enable),
        blocks.local_cache.sets.eq(csr.local_cache_sets),
        blocks.remote_cache.enable.eq(csr.remote_cache_enable),
        blocks.remote_cache.sets.eq(csr.remote_cache_sets),
        blocks.remote_cache.merge.eq(csr.requester_merge),
        # Lookups leave in packets as full as possible.
        blocks.lookup_packager.batch.eq(8 * config.net_payload_beats),
        blocks.lookup_packager.timeout.eq(csr.lookup_timeout),
        blocks.lookup_packager.window.eq(csr.lookup_window),
        blocks.lookup_receiver.share.eq(csr.lookup_share),
        blocks.vector_packager.timeout.eq(csr.vector_timeout),
        blocks.result_frames.timeout.eq(csr.result_timeout),
        blocks.access_tap.enable.eq(csr.tap_select != 0),
        blocks.access_tap.event.eq(Mux(
            csr.tap_select == 2, blocks.remote_cache.tap, blocks.local_cache.tap)),
        csr.table_ready.eq(Cat(block.write_ready for block in keepers).all()),
    ]
    for name, block in parts.items():
        if name == "training_path":
            m.d.comb += [csr.counters[part].eq(block.counters[part])
                         for part in block.counters.shape().members]
        elif hasattr(block, "counters"):
            m.d.comb += csr.counters[name].eq(block.counters)


def watch(m: Module, config: NicConfig, csr: RegisterBlock, parts: dict,
          nic: wiring.Component) -> None:
    """Expose the state of ``nic``: streams of its ``parts`` and edges, and outstanding answers."""
    blocks, streams = SimpleNamespace(**parts), {}
    for name in channel_map(config.training):
        part, _, port = name.partition(".")
        streams[name] = getattr(parts[part], port) if port else getattr(nic, part)
    m.submodules.channel_probe = probe = ChannelProbe(streams, config.training)
    wiring.connect(m, probe.now, wiring.flipped(nic.channels))
    wiring.connect(m, probe.kept, csr.channels)
    m.d.comb += csr.lookup_next_node.eq(blocks.lookup_packager.next_node)
    for answers, asking in ((blocks.gpu_answers, blocks.local_cache),
                            (blocks.peer_answers, blocks.remote_cache)):
        m.d.comb += [answers.asked.eq(asking.misses.valid & asking.misses.ready),
                     answers.answered.eq(asking.landed)]
    m.d.comb += [blocks.dense_answers.asked.eq(blocks.dense_ring.asked),
                 blocks.dense_answers.answered.eq(blocks.dense_ring.landed)]
