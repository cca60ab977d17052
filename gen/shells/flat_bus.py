"""Connection of a shell's flat AXI4-Lite ports to a bus of this package."""

from amaranth.hdl import Module

__all__ = ["connect_bus"]


def connect_bus(m: Module, top, prefix: str, bus) -> None:
    """Connect ports ``<prefix>_awvalid``, ... of ``top``, a slave, to ``bus``.

    ``bus`` is the slave side of :data:`rtl.control.axi_lite.AxiLite`. The caller connects addresses
    and ``wstrb``, because shells differ in them.
    """
    for name in ("awvalid", "wvalid", "wdata", "bready", "arvalid", "rready"):
        m.d.comb += getattr(bus, name).eq(getattr(top, f"{prefix}_{name}"))
    for name in ("awready", "wready", "bvalid", "bresp", "arready", "rvalid", "rdata", "rresp"):
        m.d.comb += getattr(top, f"{prefix}_{name}").eq(getattr(bus, name))
