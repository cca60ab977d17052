"""The SmartNIC as a plugin of OpenNIC's box at 250 MHz."""

from dataclasses import dataclass

from amaranth.hdl import C, Cat, ClockDomain, Module, ResetSignal, Signal
from amaranth.lib import data, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from gen.base.option import given_options, option
from gen.shells.axi_lite_crossing import AxiLiteCrossing
from gen.shells.flat_bus import connect_bus
from gen.shells.hbm_port import HBM_LENGTH_BITS, HBM_WIDTH, HbmPort
from gen.shells.masters import axi_members, axi_name, connect_axi, masters_of
from gen.shells.placing import place_nic, without_reset
from gen.shells.register_stages import RegisterStages
from gen.shells.reset_handshake import ResetHandshake
from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import BEAT_BYTES, Beat
from rtl.memory.axi4 import ADDRESS_BITS, HBM_CHANNELS
from rtl.shared import Shared

__all__ = ["CSR_ADDRESS_BITS", "OpenNicPlugin", "OpenNicPorts", "require_ethernet"]

CSR_ADDRESS_BITS = 20
"""Address bits of the box's window in BAR2, 0x100000 to 0x1FFFFF."""
_USER_BITS = 16
_RESET_CYCLES = 100
_OUTGOING = data.StructLayout({"beat": Beat, "bytes": _USER_BITS})


@dataclass(frozen=True)
class OpenNicPorts:
    """Numbers of ports of the built shell.

    ``functions`` is the number of functions of each of ``qdma`` QDMA subsystems. Raises
    ``TypeError``, ``ValueError``.
    """

    functions: int = option(
        1, "of OpenNIC, as -num_phys_func of its build.tcl: 1 to 4", least=1, most=4)
    qdma: int = option(1, "of OpenNIC, as -num_qdma: 1 or 2", least=1, most=2)
    macs: int = option(1, "of OpenNIC, as -num_cmac_port: 1 or 2", least=1, most=2)

    def __post_init__(self) -> None:
        for each in given_options(OpenNicPorts):
            name, bounds, value = each.name, each.option, getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not bounds.least <= value <= bounds.most:  # type: ignore[operator]
                raise ValueError(f"{name} must be between {bounds.least} and {bounds.most}, "
                                 f"not {value!r}")

    @property
    def host(self) -> int:
        """Number of streams from and to PCIe."""
        return self.functions * self.qdma


def require_ethernet(config: NicConfig) -> NicConfig:
    """Return ``config``. Raises ``ValueError`` unless its network uses Ethernet frames."""
    if config.net_framing != "ethernet":
        raise ValueError(f"net_framing must be ethernet with shell opennic, "
                         f"not {config.net_framing!r}")
    return config


class OpenNicPlugin(wiring.Component):
    """Wrap a SmartNIC with the ports of OpenNIC's ``box_250mhz``, with the shell's names.

    The NIC uses function 0 of QDMA 0 and MAC port 0. The wrapper drops packets from other ports and
    sends nothing to them. Packets to the network have ``tuser_dst`` set to the MAC port, packets to
    the host to the function. ``tuser_size`` is the packet's length on every beat. The packet
    adapter of the shell drops frames with a wrong FCS.

    Registers are at 0x00000 to 0x0FFFF of the box's window; other addresses are answered SLVERR.
    Streams pass two register stages in each direction, because QDMA and MAC are on other dies than
    most of the NIC. The stages keep their packets through a reset of the module. In reset the
    module accepts no beat. Every outgoing packet has ``tuser_size`` bytes and its end, even if a
    reset cuts it.

    Latency 2 cycles more than the NIC's own on each stream; throughput 1 beat per cycle.

    A design may have an attribute ``masters``, entries of :class:`rtl.memory.axi4.MemoryMaster`.
    The shell has no HBM. Each master becomes a port for the HBM IP
    (:class:`gen.shells.hbm_port.HbmPort`), with its pseudo-channel in the upper address bits, and
    :mod:`gen.shells.opennic_hbm` adds the IP beside this module.

    Parameters: ``nic``, a component with the edges of :class:`rtl.nic.SmartNic`; ``ports``, also an
    attribute, like ``masters``. Raises the exceptions of :func:`gen.shells.masters.check_masters`.

    Ports
    -----
    s_axil_*: control, 32 bits, on ``axil_aclk``.
    s_axis_qdma_h2c_*, m_axis_qdma_c2h_*: from and to PCIe, a concatenation of ``ports.host``.
    m_axis_adap_tx_250mhz_*, s_axis_adap_rx_250mhz_*: to and from the MACs, ``ports.macs``.
    mod_rstn, mod_rst_done: reset of this module, on ``axil_aclk``. Done when the NIC has swept its
        tables (``swept``), whatever frames arrive.
    axil_aclk, axis_aclk: clocks, 125 and 250 MHz, in any phase.
    m_axi_<name>_*: an AXI3 master of 256 bits for each entry of ``masters``, on ``hbm_aclk``.
    hbm_aclk: with masters, a clock of up to 450 MHz.
    hbm_ready: with masters, 1 when this clock runs and the memory is initialised. The module stays
        in reset until then.
    hbm_aresetn: with masters, reset of the memory's ports.
    """

    def __init__(self, nic: wiring.Component, ports: OpenNicPorts | None = None):
        self._nic = nic
        self.ports = ports = ports or OpenNicPorts()
        self.masters = masters_of(nic)
        members: dict = {
            "s_axil_awvalid": In(1), "s_axil_awaddr": In(32), "s_axil_awready": Out(1),
            "s_axil_wvalid": In(1), "s_axil_wdata": In(32), "s_axil_wready": Out(1),
            "s_axil_bvalid": Out(1), "s_axil_bresp": Out(2), "s_axil_bready": In(1),
            "s_axil_arvalid": In(1), "s_axil_araddr": In(32), "s_axil_arready": Out(1),
            "s_axil_rvalid": Out(1), "s_axil_rdata": Out(32), "s_axil_rresp": Out(2),
            "s_axil_rready": In(1),
        }
        for name, count, inward in (
                ("s_axis_qdma_h2c", ports.host, True), ("m_axis_qdma_c2h", ports.host, False),
                ("m_axis_adap_tx_250mhz", ports.macs, False),
                ("s_axis_adap_rx_250mhz", ports.macs, True)):
            forth, back = (In, Out) if inward else (Out, In)
            members |= {f"{name}_{field}": forth(width * count) for field, width in (
                ("tvalid", 1), ("tdata", BEAT_BITS), ("tkeep", BEAT_BYTES), ("tlast", 1),
                ("tuser_size", _USER_BITS), ("tuser_src", _USER_BITS), ("tuser_dst", _USER_BITS))}
            members[f"{name}_tready"] = back(count)
        members |= {"mod_rstn": In(1), "mod_rst_done": Out(1), "axil_aclk": In(1),
                    "axis_aclk": In(1)}
        if self.masters:
            members |= {"hbm_aclk": In(1), "hbm_ready": In(1), "hbm_aresetn": Out(1)}
        for master in self.masters:
            members |= axi_members(axi_name(master), HBM_WIDTH, length_bits=HBM_LENGTH_BITS,
                                   address_bits=ADDRESS_BITS + HBM_CHANNELS.bit_length() - 1)
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        nic = self._nic
        place_nic(m, nic, self.axis_aclk)
        self._clocks(m, nic)
        self._control(m, nic)
        self._arrive(m, "s_axis_qdma_h2c", nic.host_rx, "host_rx")
        self._arrive(m, "s_axis_adap_rx_250mhz", nic.net_rx, "net_rx")
        self._depart(m, "m_axis_qdma_c2h", nic.host_tx, nic.host_tx_bytes, "host_tx",
                     source=1 << 6, destination=1 << 0)
        self._depart(m, "m_axis_adap_tx_250mhz", nic.net_tx, nic.net_tx_bytes, "net_tx",
                     source=1 << 0, destination=1 << 6)
        time = Signal(32)
        m.d.sync += time.eq(time + 1)
        m.d.comb += [nic.time.eq(time), nic.tap.ready.eq(1)]
        return m

    def _clocks(self, m, nic) -> None:
        m.domains.axil = axil = ClockDomain("axil")
        m.domains.sync = sync = ClockDomain("sync")
        m.d.comb += [axil.clk.eq(self.axil_aclk), sync.clk.eq(self.axis_aclk)]
        m.submodules.reset_handshake = reset = ResetHandshake(_RESET_CYCLES, domain="axil")
        m.submodules.reset_sync = FFSynchronizer(reset.reset, sync.rst, init=1)
        ready = reset.ready
        if self.masters:
            ready = Signal()
            m.d.comb += reset.ready.eq(ready & self._memory(m, nic, reset.reset))
        m.submodules.swept_sync = FFSynchronizer(
            nic.swept, ready, o_domain="axil", reset_less=False)
        m.d.comb += [axil.rst.eq(reset.reset), reset.mod_rstn.eq(self.mod_rstn),
                     self.mod_rst_done.eq(reset.mod_rst_done)]

    def _memory(self, m, nic, reset):
        """Connect the masters, and keep their clock domain in ``reset`` until the clock runs.
        Return whether the memory is ready, on ``axil``."""
        m.domains.hbm = hbm = ClockDomain("hbm")
        wanted, there, ready = Signal(), Signal(), Signal()
        held = Signal(init=1, reset_less=True)
        m.submodules.hbm_reset_sync = FFSynchronizer(reset, wanted, o_domain="hbm", init=1)
        m.submodules.hbm_there_sync = FFSynchronizer(self.hbm_ready, there, o_domain="hbm")
        m.submodules.hbm_ready_sync = FFSynchronizer(self.hbm_ready, ready, o_domain="axil")
        m.d.hbm += held.eq(wanted | ~there)
        m.d.comb += [hbm.clk.eq(self.hbm_aclk), hbm.rst.eq(held), self.hbm_aresetn.eq(~held)]
        for master in self.masters:
            m.submodules[f"{master.name}_port"] = port = Shared(
                HbmPort(master.width), f"hbm_port_{master.width}", has_reset=True)
            wiring.connect(m, getattr(nic, master.name), port.i)
            connect_axi(m, self, axi_name(master), port.o,
                        base=master.channel << ADDRESS_BITS)
        return ready

    def _control(self, m, nic) -> None:
        m.submodules.csr_crossing = crossing = AxiLiteCrossing(CSR_ADDRESS_BITS)
        connect_bus(m, self, "s_axil", crossing.s)
        m.d.comb += [
            crossing.s.wstrb.eq(0xF),
            Cat(crossing.s.awaddr, crossing.s_awaddr_high).eq(self.s_axil_awaddr),
            Cat(crossing.s.araddr, crossing.s_araddr_high).eq(self.s_axil_araddr),
        ]
        wiring.connect(m, crossing.m, nic.csr)

    def _arrive(self, m, name: str, edge, stages: str) -> None:
        """Pass packets of port 0 to the NIC, and drop packets of the other ports."""
        into, awake = RegisterStages(Beat), ~ResetSignal()
        m.submodules[stages] = without_reset(into)
        beat = into.i.payload
        ready = getattr(self, f"{name}_tready")
        m.d.comb += [
            into.i.valid.eq(getattr(self, f"{name}_tvalid")[0] & awake),
            beat.data.eq(getattr(self, f"{name}_tdata")),
            beat.keep.eq(getattr(self, f"{name}_tkeep")),
            beat.last.eq(getattr(self, f"{name}_tlast")[0]), beat.err.eq(0),
            ready.eq(Cat(into.i.ready, C(-1, len(ready))) & awake.replicate(len(ready))),
        ]
        wiring.connect(m, into.o, edge)

    def _depart(self, m, name: str, edge, length, stages: str, *, source: int,
                destination: int) -> None:
        """Pass packets of the NIC to port 0. The other ports send nothing."""
        out = RegisterStages(_OUTGOING)
        m.submodules[stages] = without_reset(out)
        beat, valid = out.o.payload.beat, Signal()
        m.d.comb += [
            out.i.valid.eq(edge.valid), edge.ready.eq(out.i.ready),
            out.i.payload.beat.eq(edge.payload), out.i.payload.bytes.eq(length),
            valid.eq(out.o.valid), out.o.ready.eq(getattr(self, f"{name}_tready")[0]),
            getattr(self, f"{name}_tvalid").eq(valid),
            getattr(self, f"{name}_tdata").eq(beat.data),
            getattr(self, f"{name}_tkeep").eq(beat.keep),
            getattr(self, f"{name}_tlast").eq(beat.last),
            getattr(self, f"{name}_tuser_size").eq(out.o.payload.bytes),
            getattr(self, f"{name}_tuser_src").eq(source),
            getattr(self, f"{name}_tuser_dst").eq(destination),
        ]
