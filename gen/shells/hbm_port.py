"""Adapter from an AXI4 master of the NIC to a port of the HBM IP, with another width and clock."""

from amaranth.hdl import C, Cat, DomainRenamer, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.shells.memory_stages import MemoryStages
from gen.shells.register_stages import RegisterStages
from gen.shells.stream_crossing import StreamCrossing
from rtl.memory import Ram, axi4_master
from rtl.memory.axi4 import ADDRESS_BITS, ID_BITS

__all__ = ["HBM_LENGTH_BITS", "HBM_WIDTH", "HbmAddress", "HbmPort"]

HBM_WIDTH, HBM_LENGTH_BITS = 256, 4
"""Data bits, and bits of ``awlen``, of a port of the HBM IP (PG276: AXI3)."""
HbmAddress = data.StructLayout(
    {"address": ADDRESS_BITS, "more": HBM_LENGTH_BITS, "id": ID_BITS})
"""A burst of up to 16 beats of 256 bits."""


class HbmPort(wiring.Component):
    """Adapt an AXI4 master to the clock and the width of a pseudo-channel's port.

    Each channel has register stages, because the NIC is on another die, and then a FIFO between the
    clocks. On the memory's side, the block splits beats of 512 bits into two of 256 bits. It joins
    read data by ID, because the memory may interleave bursts. A joined beat has the error bits of
    both halves.

    The memory's side may be in reset, with a stopped clock, longer than ``sync``. Bursts then wait.

    Latency of a read, besides the memory's own: about 12 cycles of ``sync`` and 12 of ``hbm``.
    Throughput of each channel: 1 beat per cycle of ``sync``, or 256 bits per cycle of ``hbm``.

    Parameters: ``width``, data bits of the master, 256 or 512.

    Ports
    -----
    i: :func:`rtl.memory.axi4.axi4_master`, from the NIC, in ``sync``.
    o: :func:`rtl.memory.axi4.axi4_master` with 256 bits and :data:`HbmAddress`, to the memory, in
        ``hbm``; all outputs are registers.

    Raises ``ValueError`` for another ``width``.
    """

    def __init__(self, width: int = 2 * HBM_WIDTH):
        if width not in (HBM_WIDTH, 2 * HBM_WIDTH):
            raise ValueError(f"width must be {HBM_WIDTH} or {2 * HBM_WIDTH}, not {width!r}")
        self._width, self._split = width, width != HBM_WIDTH
        super().__init__({"i": In(axi4_master(width)),
                          "o": Out(axi4_master(HBM_WIDTH, HbmAddress))})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.stages = stages = MemoryStages(self._width)
        wiring.connect(m, wiring.flipped(self.i), stages.i)
        near = stages.o
        for name in ("aw", "ar"):
            wide, out = self._leave(m, name, getattr(near, name), getattr(self.o, name))
            more = wide.payload.more
            m.d.comb += [
                out.payload.address.eq(wide.payload.address), out.payload.id.eq(wide.payload.id),
                out.payload.more.eq(Cat(C(1, 1), more) if self._split else more),
                out.valid.eq(wide.valid), wide.ready.eq(out.ready),
            ]
        self._write(m, *self._leave(m, "w", near.w, self.o.w))
        for name in ("b", "r"):
            here, there = getattr(near, name), getattr(self.o, name)
            m.submodules[f"{name}_stage"] = stage = DomainRenamer("hbm")(
                RegisterStages(there.payload.shape(), 1))
            m.submodules[f"{name}_crossing"] = crossing = StreamCrossing(
                here.payload.shape(), "hbm", "sync")
            wiring.connect(m, wiring.flipped(there), stage.i)
            if name == "r" and self._split:
                self._join(m, stage.o, crossing.i)
            else:
                wiring.connect(m, stage.o, crossing.i)
            wiring.connect(m, crossing.o, here)
        return m

    def _leave(self, m, name: str, near, port):
        """Transfer channel ``name`` to ``hbm``; return the stream there, and the last register."""
        m.submodules[f"{name}_crossing"] = crossing = StreamCrossing(
            near.payload.shape(), "sync", "hbm")
        m.submodules[f"{name}_stage"] = stage = DomainRenamer("hbm")(
            RegisterStages(port.payload.shape(), 1))
        wiring.connect(m, near, crossing.i)
        wiring.connect(m, stage.o, wiring.flipped(port))
        return crossing.o, stage.i

    def _write(self, m, wide, out) -> None:
        """Write the low half of a beat first."""
        upper = Signal()
        last = ~C(self._split) | upper
        m.d.comb += [
            out.valid.eq(wide.valid), wide.ready.eq(out.ready & last),
            out.payload.last.eq(wide.payload.last & last),
            out.payload.data.eq(wide.payload.data), out.payload.strobe.eq(wide.payload.strobe),
        ]
        with m.If(upper):
            m.d.comb += [
                out.payload.data.eq(wide.payload.data[HBM_WIDTH:]),
                out.payload.strobe.eq(wide.payload.strobe[HBM_WIDTH // 8:]),
            ]
        if self._split:
            with m.If(out.valid & out.ready):
                m.d.hbm += upper.eq(~upper)

    def _join(self, m, half, whole) -> None:
        """Hold the low half of a beat, by its ID, until the upper half arrives."""
        waiting = Signal(1 << ID_BITS)
        m.submodules.low_halves = low = DomainRenamer("hbm")(
            Ram(HBM_WIDTH + 2, 1 << ID_BITS, style="lutram", latency=0))
        beat, upper = half.payload, Signal()
        m.d.comb += [
            upper.eq(waiting.bit_select(beat.id, 1)),
            low.write_addr.eq(beat.id), low.read_addr.eq(beat.id),
            low.write_data.eq(Cat(beat.data, beat.resp)), low.write_en.eq(half.valid & ~upper),
            whole.valid.eq(half.valid & upper), half.ready.eq(~upper | whole.ready),
            whole.payload.data.eq(Cat(low.read_data[:HBM_WIDTH], beat.data)),
            whole.payload.resp.eq(low.read_data[HBM_WIDTH:] | beat.resp),
            whole.payload.id.eq(beat.id), whole.payload.last.eq(beat.last),
        ]
        with m.If(half.valid & half.ready):
            m.d.hbm += waiting.bit_select(beat.id, 1).eq(~upper)
