"""A shell's top with plain streams in place of its ports, for an engine that runs it like a NIC."""

from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from gen.shells import SHELLS
from gen.shells.kernel_control import NIC_BASE
from rtl.config import NicConfig
from rtl.control.axi_lite import AxiLite
from rtl.formats import Beat, HeaderBeat
from rtl.nic import SmartNic
from rtl.shared import Shared

__all__ = ["SIZED", "Streams"]

SIZED = data.StructLayout({"beat": Beat, "size": 16})
"""A beat that leaves, with ``size``, the length at OpenNIC's ports, else 0."""
_PORTS = {
    "opennic": {"host_rx": "s_axis_qdma_h2c", "host_tx": "m_axis_qdma_c2h",
                "net_rx": "s_axis_adap_rx_250mhz", "net_tx": "m_axis_adap_tx_250mhz"},
    "vitis": {"host_rx": "s_axis_host", "host_tx": "m_axis_host", "net_rx": "s_axis_net",
              "net_tx": "m_axis_net"}}
_CONTROL = {"opennic": "s_axil", "vitis": "s_axi_control"}


class Streams(wiring.Component):
    """The top of ``shell`` around the NIC of ``config``; all of its clocks are ``sync``.

    Ports
    -----
    host_rx, net_rx, host_tx, net_tx: streams of :data:`rtl.formats.Beat` and :data:`SIZED`.
    csr: registers of the NIC.
    resetn: the reset of the shell's top.
    done: end of the reset (OpenNIC).
    """

    def __init__(self, shell: str, config: NicConfig):
        self.nic = SmartNic(SHELLS[shell].prepare(config))
        self.registers, self._shell = self.nic.registers, shell
        super().__init__({
            "host_rx": In(stream.Signature(Beat)), "net_rx": In(stream.Signature(Beat)),
            "host_tx": Out(stream.Signature(SIZED)), "net_tx": Out(stream.Signature(SIZED)),
            "csr": In(AxiLite), "resetn": In(1, init=1), "done": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        shell = self._shell
        # Converted separately, because its clock domains have the same names.
        m.submodules.top = top = Shared(SHELLS[shell].wrap(self.nic), "top")
        clocks = ("ap_clk",) if shell == "vitis" else ("axil_aclk", "axis_aclk")
        m.d.comb += [getattr(top, clock).eq(ClockSignal()) for clock in clocks]
        for name, port in _PORTS[shell].items():
            edge = getattr(self, name)

            def member(field, port=port):
                return getattr(top, f"{port}_{field}")

            if name.endswith("rx"):
                m.d.comb += [member("tvalid").eq(edge.valid), edge.ready.eq(member("tready")),
                             *(member(f"t{field}").eq(edge.payload[field])
                               for field in ("data", "keep", "last"))]
            else:
                m.d.comb += [edge.valid.eq(member("tvalid")), member("tready").eq(edge.ready),
                             *(edge.payload.beat[field].eq(member(f"t{field}"))
                               for field in ("data", "keep", "last"))]
                if shell == "opennic":
                    m.d.comb += edge.payload.size.eq(member("tuser_size"))
        for name, width in AxiLite.members.items():
            outer, inner = getattr(self.csr, name), getattr(top, f"{_CONTROL[shell]}_{name}",
                                                            None)
            if inner is not None:
                m.d.comb += inner.eq(outer) if width.flow == Out else outer.eq(inner)
        if shell == "opennic":
            m.d.comb += [top.mod_rstn.eq(self.resetn), self.done.eq(top.mod_rst_done)]
        else:
            m.d.comb += [
                top.ap_rst_n.eq(self.resetn),
                *(getattr(top, f"s_axi_control_{name}").eq(getattr(self.csr, name) + NIC_BASE)
                  for name in ("awaddr", "araddr"))]
            self._name_the_socket(m, top)
        return m

    def _name_the_socket(self, m: Module, top) -> None:
        """Give the kernel the sender of each packet, as the UDP kernel does."""
        field, beat = HeaderBeat["ember"], self.net_rx.payload
        start = field.offset + field.shape["source"].offset
        inside, held = Signal(), Signal(field.shape["source"].width)
        now = beat.data[start:start + len(held)]
        m.d.comb += top.s_axis_net_tdest.eq(held)
        with m.If(~inside):
            m.d.comb += top.s_axis_net_tdest.eq(now)
        with m.If(self.net_rx.valid & self.net_rx.ready):
            m.d.sync += inside.eq(~beat.last)
            with m.If(~inside):
                m.d.sync += held.eq(now)
