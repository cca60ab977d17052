"""Memory masters of a design: checks, and their flat AXI ports on a shell's top."""

from collections.abc import Sequence

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.verilog.module_names import check_module_name
from rtl.memory.axi4 import HBM_CHANNELS, ID_BITS, MemoryMaster

__all__ = ["WIDTHS", "axi_members", "axi_name", "check_masters", "connect_axi", "masters_of"]

WIDTHS = (256, 512)
"""Allowed data widths of a master: the width of an HBM port, or a beat of the NIC."""
_INCREMENTING = 0b01


def masters_of(design: wiring.Component) -> tuple[MemoryMaster, ...]:
    """Return the attribute ``masters`` of ``design``; empty if it is missing.

    Raises the exceptions of :func:`check_masters`.
    """
    masters = tuple(MemoryMaster(*entry) for entry in getattr(design, "masters", ()))
    check_masters(masters)
    return masters


def check_masters(masters: Sequence[MemoryMaster]) -> None:
    """Raise ``ValueError`` unless the card's memory has a channel for each of ``masters``, and
    ``TypeError`` for an entry of the wrong type."""
    if len(masters) > HBM_CHANNELS:
        raise ValueError(f"masters must be at most {HBM_CHANNELS}, one for each pseudo-channel of "
                         f"the HBM, not {len(masters)}")
    names: set[str] = set()
    owners: dict[int, str] = {}
    for name, channel, width in masters:
        check_module_name(name, "name of a master")
        if name in names:
            raise ValueError(f"names of masters must differ: {name!r} occurs twice")
        for what, value in (("channel", channel), ("width", width)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{what} of {name} must be an integer, not {value!r}")
        if not 0 <= channel < HBM_CHANNELS:
            raise ValueError(f"channel of {name} must be between 0 and {HBM_CHANNELS - 1}, "
                             f"not {channel}")
        if channel in owners:
            raise ValueError(f"channel of {name} must be free: master {owners[channel]} uses "
                             f"channel {channel}")
        if width not in WIDTHS:
            raise ValueError(f"width of {name} must be {' or '.join(map(str, WIDTHS))} bits, "
                             f"not {width}")
        names.add(name)
        owners[channel] = name


def axi_name(master: MemoryMaster) -> str:
    """Return the prefix of the ports of ``master``."""
    return f"m_axi_{master.name}"


def axi_members(prefix: str, width: int, *, address_bits: int, length_bits: int) -> dict:
    """Return the ports of an AXI master by name, without locks, caches and protection.

    width: data width.
    length_bits: width of ``awlen``: 4 with AXI3, 8 with AXI4.
    """
    members: dict = {}
    for channel in ("aw", "ar"):
        members |= {f"{channel}id": Out(ID_BITS), f"{channel}addr": Out(address_bits),
                    f"{channel}len": Out(length_bits), f"{channel}size": Out(3),
                    f"{channel}burst": Out(2), f"{channel}valid": Out(1),
                    f"{channel}ready": In(1)}
    members |= {"wdata": Out(width), "wstrb": Out(width // 8), "wlast": Out(1), "wvalid": Out(1),
                "wready": In(1), "bid": In(ID_BITS), "bresp": In(2), "bvalid": In(1),
                "bready": Out(1), "rid": In(ID_BITS), "rdata": In(width), "rresp": In(2),
                "rlast": In(1), "rvalid": In(1), "rready": Out(1)}
    return {f"{prefix}_{name}": member for name, member in members.items()}


def connect_axi(m: Module, top, prefix: str, axi, *, base: int = 0) -> None:
    """Connect ports ``<prefix>_awid``, ... of ``top`` to ``axi``, an
    :func:`rtl.memory.axi4.axi4_master`.

    base: upper bits of every address; its low bits are 0.
    """

    def port(name):
        return getattr(top, f"{prefix}_{name}")

    for channel in ("aw", "ar"):
        burst = getattr(axi, channel)
        m.d.comb += [
            port(f"{channel}id").eq(burst.payload.id),
            port(f"{channel}addr").eq(burst.payload.address | base),
            port(f"{channel}len").eq(burst.payload.more),
            port(f"{channel}size").eq((len(port("wdata")) // 8).bit_length() - 1),
            port(f"{channel}burst").eq(_INCREMENTING),
            port(f"{channel}valid").eq(burst.valid), burst.ready.eq(port(f"{channel}ready")),
        ]
    m.d.comb += [
        port("wdata").eq(axi.w.payload.data), port("wstrb").eq(axi.w.payload.strobe),
        port("wlast").eq(axi.w.payload.last), port("wvalid").eq(axi.w.valid),
        axi.w.ready.eq(port("wready")),
        axi.b.payload.id.eq(port("bid")), axi.b.payload.resp.eq(port("bresp")),
        axi.b.valid.eq(port("bvalid")), port("bready").eq(axi.b.ready),
        axi.r.payload.id.eq(port("rid")), axi.r.payload.data.eq(port("rdata")),
        axi.r.payload.resp.eq(port("rresp")), axi.r.payload.last.eq(port("rlast")),
        axi.r.valid.eq(port("rvalid")), port("rready").eq(axi.r.ready),
    ]
