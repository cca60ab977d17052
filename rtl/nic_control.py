"""Connections between the register block of a SmartNIC and its other blocks."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring

from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.control.settings import controls
from rtl.formats import InteractionMode
from rtl.keys.owner_split import DESCRIPTOR_WRITES
from rtl.monitor.channels import ChannelProbe, channel_map

__all__ = ["SETTLING", "control", "watch"]

_PORTS = ("node", "nodes", "vector_beats", "mac_base", "ip_base", "udp_port")
"""Registers that drive the port of their name in every block that has it."""
_OF_VALUES = ("pooler", "result_packager", "dense_ring", "interaction", "result_frames")
"""Blocks of vectors as float32: vectors of other values have other beats."""
_TRAINING_PORTS = (
    "pooling_mean", "local_reduction", "gradient_partials", "optimizer", "learning_rate",
    "epsilon", "gradient_timeout", "gradient_window", "gradient_share", "request_batch",
    "request_timeout")
"""The same for registers of the gradient path."""
_PULSES = ("flush",)
"""Registers without a port of their name: their rising bits are events."""

SETTLING = 1
"""Cycles from a register to the blocks that it sets."""


def control(m: Module, config: NicConfig, csr: RegisterBlock, parts: dict, time: Signal) -> None:
    """Connect registers to ``parts``, the blocks of the NIC by name, and counters to registers.

    Register values arrive at the blocks :data:`SETTLING` cycles later.
    """
    blocks = SimpleNamespace(**parts)
    given: list[tuple[str, Value, ValueLike]] = []
    """Block, its port, and the value of the port."""

    def give(block: str, **ports: ValueLike) -> None:
        given.extend((block, getattr(parts[block], port), value) for port, value in ports.items())

    settings = {name: getattr(csr, name) for name in _PORTS}
    # Longer vectors do not share beats.
    settings["vector_packing"] = Mux(csr.vector_beats == 1, csr.vector_packing, 0)
    if config.training and config.owner_bags:
        settings["gradient_words"] = csr.gradient_words
    settings["interact"] = csr.interaction_mode != InteractionMode.OFF
    unique = csr.unique_delivery & (csr.interaction_mode == InteractionMode.OFF)
    of_values = settings
    if config.short_vectors:
        settings |= {"value_beats": csr.value_beats,
                     "value_packing": Mux(csr.value_beats == 1, csr.value_packing, 0)}
        of_values = settings | {f"vector_{name}": settings[f"value_{name}"]
                                for name in ("beats", "packing")}
    for name, block in parts.items():
        given_to = of_values if name in _OF_VALUES else settings
        give(name, **{port: value for port, value in given_to.items() if hasattr(block, port)})
        if hasattr(block, "time"):
            m.d.comb += block.time.eq(time)
    keepers = ["query_checker", "lookup_check"]
    if config.training:
        keepers.append("training_path")
        give("training_path", **{name: getattr(csr, name) for name in _TRAINING_PORTS})
        give("dispatcher", training=csr.training, overtake=csr.overtake)
        give("query_checker", training=csr.training)
    if config.owner_bags:
        keepers.append("bag_check")
        if config.training:
            keepers.append("bag_gradients")
            give("training_path", gpu_updates=csr.gpu_updates)
            give("bag_credit_return", window=csr.bag_window)
        give("bag_packager", timeout=csr.bag_timeout, window=csr.bag_window)
        give("bag_lists", batch=csr.bag_batch, timeout=csr.request_timeout)
        give("bag_receiver", share=csr.bag_share)
        give("bag_vectors", timeout=csr.vector_timeout)
    if config.repeat_positions:
        give("bag_repeats", enable=csr.repeats_enable)
    # The base of a table is written with its other words, whose blocks drive ``write_ready``.
    for name in (*keepers, "row_reads"):
        give(name, **{port: getattr(csr, f"table_{port}") for port in DESCRIPTOR_WRITES})
    for name in ("request_packager", "dense_ring"):
        give(name, batch=csr.request_batch, timeout=csr.request_timeout)
    give("dedupe", enable=csr.dedupe_enable, step_floor=csr.step_floor)
    for name in ("delivery", "dispatcher"):
        give(name, unique=unique)
    give("index_packager", timeout=csr.index_timeout)
    # With unique delivery the host pools the vectors.
    give("pooler", mean=csr.pooling_mean & ~unique)
    if config.owner_bags:
        give("pooler", by_table=csr.pooling_by_table & ~unique)
    give("interaction", dots=csr.interaction_mode == InteractionMode.DOT,
         itself=csr.interaction_itself)
    give("local_cache", enable=csr.local_cache_enable, sets=csr.local_cache_sets)
    give("remote_cache", enable=csr.remote_cache_enable, sets=csr.remote_cache_sets,
         merge=csr.requester_merge)
    flushed, flush = Signal(2), Signal(2)
    m.d.sync += [flushed.eq(csr.flush), flush.eq(csr.flush & ~flushed)]
    # The dedupe table also contains rows of this node, which later lookups of a step would read.
    forget = flush[0] | (blocks.training_path.forget if config.training else 0)
    m.d.comb += [
        blocks.local_cache.flush.eq(flush[0]),
        blocks.remote_cache.flush.eq(flush[1] | (blocks.lost_misses.back if config.link else 0)),
        blocks.dedupe.forget.eq(forget),
        csr.flushing.eq(Cat(blocks.local_cache.flushing | blocks.dedupe.forgetting,
                            blocks.remote_cache.flushing))]
    give("lookup_packager", timeout=csr.lookup_timeout, window=csr.lookup_window,
         queued=csr.output_queues)
    give("lookup_receiver", share=csr.lookup_share)
    give("vector_packager", timeout=csr.vector_timeout)
    give("result_frames", timeout=csr.result_timeout)
    give("completion_writer", flush=csr.completion_flush, timeout=csr.step_timeout,
         base=Cat(csr.completion_base_low, csr.completion_base_high))
    give("access_tap", select=csr.tap_select)
    if config.link:
        for name in ("net_assembler", "link_rejoin"):
            give(name, epoch=csr.link_epoch)
        give("net_receiver", epoch=csr.link_epoch, ack_delay=csr.link_delay)
        give("link_probes", after=csr.link_probe_after)
        give("link_sender", tries=csr.link_tries,
             **{f"timeout_{which}": getattr(csr, f"link_timeout_{which}")
                for which in ("first", "least", "most")})
    give("gpu_rings", enable=csr.gpu_rings, consumed=csr.lists_consumed,
         produced=csr.vectors_produced, every=csr.vector_every)
    # Rings have priority over row reads: their lists name keys.
    give("row_reads", enable=csr.row_reads & ~csr.gpu_rings,
         base=Cat(csr.rows_base_low, csr.rows_base_high))
    for name in ("list", "vector"):
        place = getattr(blocks.gpu_rings, f"{name}_place")
        low, high, index_low, *others = (getattr(csr, f"{name}_{word}") for word in (
            "ring_low", "ring_high", "index_low", "ring_shift", "slot_shift"))
        ports = (place.ring.base, place.index_address, place.ring.ring_shift,
                 place.ring.slot_shift)
        given.extend(("gpu_rings", *pair) for pair in zip(
            ports, (Cat(low, high), Cat(index_low, high), *others)))
    taken = [id(port) for _, port, _ in given]
    for name, *_ in controls(config):
        for block, part in parts.items():
            # A register drives the ports of its name without another driver.
            if name in part.signature.members and name not in _PULSES and (
                    id(getattr(part, name)) not in taken):
                give(block, **{name: getattr(csr, name)})
    for name, port, value in given:
        # Each block has its own copy, which tools can place beside it.
        kept = Signal(len(Value.cast(value)), reset_less=True, name=f"{name}_{port.name}")
        m.d.sync += kept.eq(value)
        m.d.comb += port.eq(kept)
    ready = Signal(reset_less=True)
    m.d.sync += ready.eq(Cat(parts[name].write_ready for name in keepers).all())
    m.d.comb += [
        csr.table_ready.eq(ready),
        # Fill lookup packets as far as possible.
        blocks.lookup_packager.batch.eq(8 * config.net_payload_beats),
        *(event.eq(cache.tap) for event, cache in
          zip(blocks.access_tap.events, (blocks.local_cache, blocks.remote_cache))),
    ]
    for name, block in parts.items():
        if name == "training_path":
            m.d.comb += [csr.counters[part].eq(block.counters[part])
                         for part in block.counters.shape().members]
        elif hasattr(block, "counters"):
            m.d.comb += csr.counters[name].eq(block.counters)
    if config.link:
        m.d.comb += csr.counters.link_receiver.eq(blocks.net_receiver.link_counters)


def watch(m: Module, config: NicConfig, csr: RegisterBlock, parts: dict,
          nic: wiring.Component) -> None:
    """Expose the state of ``nic``: streams of its ``parts`` and edges, and outstanding answers."""
    blocks, streams = SimpleNamespace(**parts), {}
    for name in channel_map(*config.optional):
        part, _, port = name.partition(".")
        streams[name] = getattr(parts[part], port) if port else getattr(nic, part)
    m.submodules.channel_probe = probe = ChannelProbe(streams, *config.optional)
    wiring.connect(m, probe.now, wiring.flipped(nic.channels))
    wiring.connect(m, probe.kept, csr.channels)
    m.d.comb += csr.lookup_next_node.eq(blocks.lookup_packager.next_node)
    for answers, asking in ((blocks.gpu_answers, blocks.local_cache),
                            (blocks.peer_answers, blocks.remote_cache)):
        m.d.comb += [answers.asked.eq(asking.misses.valid & asking.misses.ready),
                     answers.answered.eq(asking.landed)]
    m.d.comb += [blocks.dense_answers.asked.eq(blocks.dense_ring.asked),
                 blocks.dense_answers.answered.eq(blocks.dense_ring.landed)]
