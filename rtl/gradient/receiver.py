"""Gradient receiver: packets of gradients from the host in, one gradient per key out."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    STEP_BITS,
    GradientBeat,
    RecordBeat,
    Refused,
)
from rtl.gateable import Gateable
from rtl.gradient.checker import GRADIENT_CHECK_COUNTERS, GradientCheck
from rtl.gradient.expander import GRADIENT_EXPANDER_COUNTERS, GradientExpander
from rtl.gradient.unpacker import GRADIENT_UNPACKER_COUNTERS, GradientUnpacker
from rtl.keys.owner_split import DESCRIPTOR_WRITES

__all__ = ["GradientReceiver"]


class GradientReceiver(Gateable, wiring.Component):
    """Combine unpacker, check and expander: the path of gradients from parser to reduction.

    Parameters
    ----------
    config: sizes.
    depth: see :class:`~rtl.gradient.unpacker.GradientUnpacker`.

    Ports
    -----
    i, consumed: see :class:`~rtl.gradient.unpacker.GradientUnpacker`.
    refused, node, nodes, write_en, write_table, write_word, write_data, write_ready: see
        :class:`~rtl.gradient.checker.GradientCheck`.
    gradient_step: the step that accepts gradients.
    pooling_mean: divide by the number of keys of each bag.
    vector_beats: beats of a vector.
    vector_packing: log2 of the vectors that share a beat of a packet, 0 to 2; must be 0 if a vector
        has several beats. ``gradient_step``, ``pooling_mean``, ``vector_beats`` and
        ``vector_packing`` may change while idle.
    o, flush: see :class:`~rtl.gradient.expander.GradientExpander`.
    unpacker_counters, check_counters, expander_counters: counters of the blocks.
    idle: empty except for beats of a packet that is still arriving.
    """

    LATENCY = {
        ("last beat of a packet of n records", "first beat of its first key"): "n + 41",
        ("last beat of a packet of n records", "first beat of its first key, of a mean"): "n + 47",
    }
    RATE = (
        "1 beat per cycle out for any lengths of bags, as far as the packets bring it in: a "
        "beat comes in for 8 records, and one for each beat of vectors")

    def __init__(self, config: NicConfig, *, depth: int = 512):
        self._unpacker = GradientUnpacker(config, depth=depth)
        self._check = GradientCheck(config)
        self._expander = GradientExpander(config)
        super().__init__({
            "i": In(stream.Signature(RecordBeat)), "consumed": Out(CREDIT_BITS),
            "refused": Out(stream.Signature(Refused)), "o": Out(stream.Signature(GradientBeat)),
            "flush": Out(stream.Signature(STEP_BITS)),
            "gradient_step": In(STEP_BITS), "pooling_mean": In(1),
            "vector_beats": In(5), "vector_packing": In(2),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "unpacker_counters": Out(GRADIENT_UNPACKER_COUNTERS),
            "check_counters": Out(GRADIENT_CHECK_COUNTERS),
            "expander_counters": Out(GRADIENT_EXPANDER_COUNTERS), "idle": Out(1),
        })

    @property
    def credits(self) -> int:
        """Beats that the host may have sent ahead of ``consumed``."""
        return self._unpacker.credits

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.unpacker = unpacker = self._unpacker
        m.submodules.check = check = self._check
        m.submodules.expander = expander = self._expander
        wiring.connect(m, wiring.flipped(self.i), unpacker.i)
        wiring.connect(m, unpacker.items, check.i)
        wiring.connect(m, unpacker.vectors, expander.vectors)
        for name in ("keys", "bags", "verdicts"):
            wiring.connect(m, getattr(check, name), getattr(expander, name))
        wiring.connect(m, check.refused, wiring.flipped(self.refused))
        wiring.connect(m, expander.o, wiring.flipped(self.o))
        wiring.connect(m, expander.flush, wiring.flipped(self.flush))
        m.d.comb += [
            self.consumed.eq(unpacker.consumed), check.step.eq(self.gradient_step),
            expander.mean.eq(self.pooling_mean), self.write_ready.eq(check.write_ready),
            self.unpacker_counters.eq(unpacker.counters),
            self.check_counters.eq(check.counters),
            self.expander_counters.eq(expander.counters),
            self.idle.eq(unpacker.idle & check.idle & expander.idle),
        ]
        for name in ("node", "nodes", *DESCRIPTOR_WRITES):
            m.d.comb += getattr(check, name).eq(getattr(self, name))
        for name in ("vector_beats", "vector_packing"):
            m.d.comb += [getattr(check, name).eq(getattr(self, name)),
                         getattr(expander, name).eq(getattr(self, name))]
        return m
