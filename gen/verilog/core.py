"""Instance of a separately converted component in another Amaranth design."""

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from gen.verilog.convert import to_verilog
from gen.verilog.module_names import check_module_name

__all__ = ["Converted"]


class Converted(wiring.Component):
    """``component`` as an instance of its own Verilog, in a design for a vendor's tools.

    Shared units and memories stay modules, so a NIC is some megabytes of Verilog. The design's own
    conversion would repeat each unit, see :mod:`rtl.shared`.

    Parameters: ``component``; ``name`` of its module and file.

    Ports: those of ``component``, in domain ``sync``. The domain's reset also drives a port
    ``rst``.

    Raises ``TypeError`` if elaborated for a platform without files, and ``ValueError`` if ``name``
    is not a valid module name.
    """

    def __init__(self, component: wiring.Component, name: str):
        check_module_name(name)
        self._component, self._name = component, name
        super().__init__(component.signature)

    def elaborate(self, platform) -> Module:
        if not hasattr(platform, "add_file"):
            raise TypeError(f"platform must be a vendor platform with add_file(), not {platform!r}")
        verilog = to_verilog(self._component, self._name)
        platform.add_file(f"{self._name}.v", verilog.text)
        present = {port.name for port in verilog.ports}
        connections = {f"i_{port}": signal for port, signal in
                       (("clk", ClockSignal()), ("rst", ResetSignal())) if port in present}
        for path, member, value in self.signature.flatten(self):
            port = "__".join(map(str, path))
            if port in present and port != "rst":
                direction = "i" if member.flow == In else "o"
                connections[f"{direction}_{port}"] = Value.cast(value)
        m = Module()
        m.submodules.core = Instance(self._name, **connections)
        return m
