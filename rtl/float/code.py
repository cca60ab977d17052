"""Conversion of 8-bit codes to binary32: code * scale + bias, rounded once to nearest even."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.code_lane import CODE_LANE_LATENCY, CodeLane
from rtl.float.code_pair import CODE_PAIR_LATENCY, CodePair
from rtl.float.delay import delayed
from rtl.shared import Shared

__all__ = ["CODE_CONVERTER_LATENCY", "CodeConverter"]

CODE_CONVERTER_LATENCY = CODE_PAIR_LATENCY + CODE_LANE_LATENCY
"""Cycles from the operands of :class:`CodeConverter` to its results."""


class CodeConverter(wiring.Component):
    """Compute ``o = code * scale + bias`` in 16 lanes of binary32, a fused multiply-add.

    The lanes share scale and bias. A :class:`~rtl.float.code_pair.CodePair` computes the alignment
    once, because it is independent of the codes. Subnormals are included. The pipeline has no
    enable.

    Ports
    -----
    codes: In(128), 16 unsigned codes of 8 bits, lane 0 lowest.
    scale, bias: In(32), binary32.
    o: Out(512), NaN as 0x7FC00000.
    """

    LATENCY = {("codes, scale and bias", "values"): CODE_CONVERTER_LATENCY}
    RATE = "1 beat per cycle"

    codes: In(8 * LANES)
    scale: In(32)
    bias: In(32)
    o: Out(32 * LANES)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.pair = pair = CodePair()
        m.d.comb += [pair.scale.eq(self.scale), pair.bias.eq(self.bias)]
        codes = delayed(m, self.codes, CODE_PAIR_LATENCY, "codes")
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = unit = Shared(CodeLane(), "code_lane")
            m.d.comb += [
                unit.code.eq(codes.word_select(lane, 8)), unit.pair.eq(pair.o),
                self.o.word_select(lane, 32).eq(unit.o),
            ]
        return m
