"""Row-wise Adagrad: step from the sum of the squares of a gradient."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    FLOAT_ADDER_LATENCY,
    FLOAT_DIVIDER_LATENCY,
    FLOAT_ROOT_LATENCY,
    RECODED,
    RECODER_LATENCY,
    CountDividerLane,
    CountReciprocal,
    FloatAdder,
    FloatDivider,
    FloatRoot,
    Recoder,
)
from rtl.float.delay import delayed
from rtl.shared import Shared

__all__ = ["ADAGRAD_LATENCY", "ADAGRAD_STATE_CYCLE", "AdagradStep"]

ADAGRAD_STATE_CYCLE = COUNT_DIVIDER_LANE_LATENCY
"""Cycles from ``total`` of :class:`AdagradStep` to its ``state``."""

_STEP_LATENCY = (FLOAT_ROOT_LATENCY + FLOAT_ADDER_LATENCY + FLOAT_DIVIDER_LATENCY
                 + RECODER_LATENCY)

ADAGRAD_LATENCY = ADAGRAD_STATE_CYCLE + FLOAT_ADDER_LATENCY + _STEP_LATENCY
"""Cycles from ``total`` of :class:`AdagradStep` to its results."""


class AdagradStep(wiring.Component):
    """Compute the new state ``m' = m + total / d`` and the step ``lr / (sqrt(m') + eps)`` of a row.

    Every operation is rounded to binary32, to nearest even; a NaN is 0x7FC00000. Source: J. Duchi
    et al., "Adaptive Subgradient Methods", 2011, with one state for all values of a row. The
    pipeline has no enable; rows leave in order.

    Ports
    -----
    total: In(32), sum of the squares of the row's gradient, at cycle 0.
    state: In(32), ``m``, at cycle :data:`ADAGRAD_STATE_CYCLE`.
    dimension: In(range(257)), ``d``; must be stable for ``RECIPROCAL_LATENCY`` cycles before use.
    learning_rate, epsilon: In(32), ``lr`` and ``eps``; may change while no row is in flight.
    new_state: Out(32), at cycle :data:`ADAGRAD_LATENCY`.
    step: Out(RECODED), at the same cycle, an operand of a multiplier.
    """

    LATENCY = {("total and state", "new state and step"): ADAGRAD_LATENCY}
    RATE = "1 row per cycle"

    total: In(32)
    state: In(32)
    dimension: In(range(16 * LANES + 1))
    learning_rate: In(32)
    epsilon: In(32)
    new_state: Out(32)
    step: Out(RECODED)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.reciprocal = reciprocal = CountReciprocal()
        m.submodules.mean = mean = Shared(CountDividerLane(), "count_divider_lane")
        m.submodules.state_adder = new = Shared(
            FloatAdder(keep=False), "float_adder_plain")
        m.submodules.root = root = Shared(FloatRoot(), "float_root")
        m.submodules.epsilon_adder = divisor = Shared(
            FloatAdder(keep=False), "float_adder_plain")
        m.submodules.divider = divider = Shared(FloatDivider(), "float_divider")
        m.submodules.recoder = recoder = Shared(Recoder(), "recoder")
        m.d.comb += [
            reciprocal.n.eq(self.dimension),
            mean.x.eq(self.total), mean.factor.eq(reciprocal.o),
            mean.exponent.eq(reciprocal.exponent),
            new.a.eq(self.state), new.b.eq(mean.o), root.i.eq(new.o),
            divisor.a.eq(root.o), divisor.b.eq(self.epsilon),
            divider.a.eq(self.learning_rate), divider.b.eq(divisor.o),
            recoder.i.eq(divider.o), self.step.eq(recoder.o),
            self.new_state.eq(delayed(m, new.o, _STEP_LATENCY, "new_state")),
        ]
        return m
