"""Real blocks whose internal signals are visible to statements."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component

from rtl.memory import Ram

__all__ = ["LOCALS", "ShownRam", "made_at_once"]

LOCALS = "self.{} = dict(locals()); "
"""An edit puts this before a ``return``: the block then has a member with all local names.
``format`` it with the member's name."""


class ShownRam(Ram):
    """A RAM that exposes its words as ``cells`` and the register behind them as ``word``."""

    def __init__(self, width: int, depth: int, *, style: str = "auto", latency: int = 1):
        super().__init__(width, depth, style=style, latency=latency)
        self.cells = [Signal(width, name=f"cell{k}") for k in range(depth)]
        self.word = Signal(width)

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        memory = m.submodules.memory
        m.d.comb += self.word.eq(memory.read_ports[0].data)
        for k, cell in enumerate(self.cells):
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(k), cell.eq(port.data)]
        return m


def made_at_once(block: type) -> type:
    """Return ``block`` as a class whose instances are elaborated on construction.

    Member ``made``: the module.
    """

    class Made(block):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.made = super().elaborate(None)

        def elaborate(self, platform) -> Module:
            return self.made

    if not issubclass(block, Component):
        raise TypeError(f"block must be a component, not {block!r}")
    return Made
