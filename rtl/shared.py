"""Shared: a unit with many instances that is converted only once.

Amaranth writes out every instance of a component separately. A platform that converts to Verilog
offers ``shared_instance(unit, name, ports)``, which converts ``unit`` once and returns an
``Instance`` of it. Amaranth's own simulator has no such platform and elaborates the unit in place.

Most shared units are pipelines, which are empty after their latency. Their registers therefore have
no reset in Verilog.
"""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

__all__ = ["Shared"]


class Shared(wiring.Component):
    """One instance of ``unit``, with the same ports.

    Parameters
    ----------
    unit: a component whose ports are plain signals or streams (no dimensions).
    name: module name; equal names must mean equal units.
    has_reset: its registers are reset, because it is not only a pipeline.
    """

    def __init__(self, unit: wiring.Component, name: str, *, has_reset: bool = False):
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"name must be an identifier, not {name!r}")
        super().__init__(unit.signature)
        self._unit = unit
        self._name = name
        self.has_reset = has_reset

    def elaborate(self, platform) -> Elaboratable:
        m = Module()
        hook = getattr(platform, "shared_instance", None)
        if hook is not None:
            m.submodules.unit = hook(self._unit, self._name, self)
            # Only the first of equal units is converted; silence the warning for the others.
            self._unit._MustUse__silence = True
        else:
            m.submodules.unit = self._unit
            wiring.connect(m, wiring.flipped(self), self._unit)
        return m
