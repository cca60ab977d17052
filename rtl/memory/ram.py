"""Simple dual-port RAM: one write port, one read port."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Ram"]

_STYLES = {"lutram": "distributed", "bram": "block", "uram": "ultra", "auto": "auto"}
_LATENCIES = {"lutram": (0, 1, 2), "bram": (1, 2), "uram": (1, 2, 3), "auto": (0, 1, 2)}


class Ram(wiring.Component):
    """Memory with one write and one read port on clock ``sync``.

    A read in the same cycle as a write to the same address returns the old contents. Contents are
    undefined until written: reset does not clear them, and UltraRAM has no initial value.

    Parameters
    ----------
    width: bits of a word.
    depth: number of words, not necessarily a power of two.
    style: ``lutram``, ``bram``, ``uram`` or ``auto``: the primitive for the vendor's tools.
    latency: cycles from ``read_addr`` to ``read_data``. 0, for ``lutram`` only, is combinational; 1
        is the register of the primitive; 2 adds its output register; 3, for ``uram`` only, adds a
        cascade register between them, half-way through the blocks in depth.

    Ports
    -----
    write_en, write_addr, write_data; read_addr, read_data.
    read_en: a word is read; while low, the first register holds. Later registers continue, so
        ``read_data`` holds ``latency - 1`` cycles later. Unused with latency 0.
    output_en (latency 2 and 3): while low, the last register, ``read_data``, holds, and data that
        arrive at it are lost unless the registers before it hold too.

    Raises ``ValueError`` for a width or depth below 1, and an unknown style or latency.
    """

    def __init__(self, width: int, depth: int, *, style: str = "auto", latency: int = 1):
        if style not in _STYLES:
            raise ValueError(f"style must be one of {', '.join(_STYLES)}, not {style!r}")
        if latency not in _LATENCIES[style]:
            raise ValueError(f"latency must be one of {', '.join(map(str, _LATENCIES[style]))} "
                             f"for style {style}, not {latency!r}")
        for name, value in (("width", width), ("depth", depth)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}")
        self.width, self.depth, self.style, self.latency = width, depth, style, latency
        addr_bits = max(1, ceil_log2(depth))
        super().__init__({
            "write_en": In(1), "write_addr": In(addr_bits), "write_data": In(width),
            "read_en": In(1, init=1), "read_addr": In(addr_bits), "read_data": Out(width),
            **({"output_en": In(1, init=1)} if latency > 1 else {}),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        hook = getattr(platform, "ram_instance", None)
        if hook is not None:
            m.submodules.memory = hook(self)
            return m
        # A simulator's platform may set contents at power-up; a design must not depend on them.
        contents = getattr(platform, "ram_contents", None)
        style = "distributed" if self.latency == 0 else _STYLES[self.style]
        m.submodules.memory = mem = memory.Memory(
            shape=self.width, depth=self.depth, init=contents(self) if contents else [],
            attrs={"ram_style": style})
        write = mem.write_port()
        read = mem.read_port(domain="sync" if self.latency else "comb")
        m.d.comb += [
            Cat(write.addr, write.data, write.en).eq(
                Cat(self.write_addr[:len(write.addr)], self.write_data, self.write_en)),
            read.addr.eq(self.read_addr[:len(read.addr)]),
        ]
        if self.latency:
            m.d.comb += read.en.eq(self.read_en)
        word = read.data
        for _ in range(self.latency - 2):
            passed = Signal(self.width, reset_less=True, name="passed")
            m.d.sync += passed.eq(word)
            word = passed
        if self.latency > 1:
            last = Signal(self.width, reset_less=True)
            with m.If(self.output_en):
                m.d.sync += last.eq(word)
            word = last
        m.d.comb += self.read_data.eq(word)
        return m
