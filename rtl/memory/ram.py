"""Simple dual-port RAM: one write port, one read port."""

from amaranth.hdl import Cat, Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Ram"]

_STYLES = {"lutram": "distributed", "bram": "block", "uram": "ultra", "auto": "auto"}


class Ram(wiring.Component):
    """Memory with one write and one read port on clock ``sync``.

    A read in the same cycle as a write to the same address returns the old contents. Contents are
    undefined until written: reset does not clear them, and UltraRAM has no initial value.

    Parameters
    ----------
    width: bits of a word.
    depth: number of words, not necessarily a power of two.
    style: ``lutram``, ``bram``, ``uram`` or ``auto``: the primitive for the vendor's tools.
    latency: cycles from ``read_addr`` to ``read_data``: 1, or 0 (then ``style`` is ``lutram``).

    Ports
    -----
    write_en, write_addr, write_data; read_en (latency 1: data holds while low), read_addr,
    read_data.
    """

    def __init__(self, width: int, depth: int, *, style: str = "auto", latency: int = 1):
        if style not in _STYLES:
            raise ValueError(f"style must be one of {', '.join(_STYLES)}, not {style!r}")
        if latency not in (0, 1):
            raise ValueError(f"latency must be 0 or 1, not {latency!r}")
        if latency == 0 and style not in ("lutram", "auto"):
            raise ValueError(f"style must be lutram for latency 0, not {style!r}")
        for name, value in (("width", width), ("depth", depth)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}")
        self.width, self.depth, self.style, self.latency = width, depth, style, latency
        addr_bits = max(1, ceil_log2(depth))
        super().__init__({
            "write_en": In(1), "write_addr": In(addr_bits), "write_data": In(width),
            "read_en": In(1, init=1), "read_addr": In(addr_bits), "read_data": Out(width),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        hook = getattr(platform, "ram_instance", None)
        if hook is not None:
            m.submodules.memory = hook(self)
            return m
        # A simulator's platform may set the contents at power-up; a design must not depend on them.
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
            self.read_data.eq(read.data),
        ]
        if self.latency:
            m.d.comb += read.en.eq(self.read_en)
        return m
