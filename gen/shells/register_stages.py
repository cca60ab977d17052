"""Register stages of a stream, for crossings between the dies of a card."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import SkidBuffer

__all__ = ["RegisterStages"]


class RegisterStages(wiring.Component):
    """``stages`` skid buffers in a row, to register both directions of a stream on each die.

    Latency ``stages`` cycles, throughput 1 item per cycle.

    Parameters: ``shape`` of an item; ``stages``, 1 or more.

    Ports: ``i`` and ``o``, streams of ``shape``.

    Raises ``TypeError`` or ``ValueError`` for invalid ``stages``.
    """

    def __init__(self, shape, stages: int = 2):
        if isinstance(stages, bool) or not isinstance(stages, int):
            raise TypeError(f"stages must be an integer, not {stages!r}")
        if not 1 <= stages <= 8:
            raise ValueError(f"stages must be between 1 and 8, not {stages!r}")
        self._shape, self._stages = shape, stages
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform) -> Module:
        m = Module()
        source = wiring.flipped(self.i)
        for k in range(self._stages):
            m.submodules[f"stage{k}"] = stage = SkidBuffer(self._shape, lutram=False)
            wiring.connect(m, source, stage.i)
            source = stage.o
        wiring.connect(m, source, wiring.flipped(self.o))
        return m
