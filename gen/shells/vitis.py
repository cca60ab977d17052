"""The SmartNIC as an RTL kernel for Vitis."""

from amaranth.hdl import Cat, ClockDomain, Module, ResetSignal, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.shells.flat_bus import connect_bus
from gen.shells.kernel_control import KERNEL_ADDRESS_BITS, KernelControl
from gen.shells.masters import axi_members, axi_name, connect_axi, masters_of
from gen.shells.memory_stages import MemoryStages
from gen.shells.placing import place_nic, without_reset
from gen.shells.register_stages import RegisterStages
from gen.shells.socket_check import SocketCheck
from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import BEAT_BYTES, NODE_BITS, Beat, HeaderBeat
from rtl.memory.axi4 import Address
from rtl.shared import Shared

__all__ = ["SOCKETS", "STREAMS", "UDP_BEATS", "VitisKernel", "adapt_to_udp"]

SOCKETS = 16
"""Size of the socket table of the 100 Gb/s UDP kernel; entry n is node n."""
UDP_BEATS = 21
"""Maximum beats after the header beat for the UDP kernel, whose packets have 1,408 bytes (22
beats)."""
_DEST_BITS, _USER_BITS = 16, 96

GLOBAL_BITS = 64
"""Bits of an address in global memory."""
_GLOBAL = data.StructLayout({**Address.members, "address": GLOBAL_BITS})
_CONSTANT = {"cache": (4, 0b0011), "prot": (3, 0b000)}
"""AXI attributes (AMBA AXI, A4): bufferable, not cached; data, secure, unprivileged."""

STREAMS = {
    "s_axis_net": ("in", {"tdest": _DEST_BITS, "tuser": _USER_BITS}),
    "m_axis_net": ("out", {"tdest": _DEST_BITS}),
    "s_axis_host": ("in", {}),
    "m_axis_host": ("out", {}),
}
"""The kernel's streams: direction, and signals in addition to data, keep, last, valid and ready."""


def adapt_to_udp(config: NicConfig) -> NicConfig:
    """Return ``config`` with the framing and packet length of the UDP kernel.

    Raises ``ValueError`` if there are more nodes than sockets.
    """
    if config.nodes > SOCKETS:
        raise ValueError(f"nodes must be at most {SOCKETS} with shell vitis, one for each socket "
                         f"of the UDP kernel, not {config.nodes!r}")
    return config.with_fields(net_framing="udp",
                              net_payload_beats=min(config.net_payload_beats, UDP_BEATS))


class VitisKernel(wiring.Component):
    """Wrap a SmartNIC as a kernel: one clock, AXI4-Lite control, four streams.

    Streams ``net`` connect to the 100 Gb/s UDP kernel (``S_AXIS_sk2nl``, ``M_AXIS_nl2sk``). An
    outgoing packet is the payload of a datagram, with its destination node in ``tdest``. ``tdest``
    of an incoming packet is the node with the sender's addresses (:class:`SocketCheck`). Streams
    ``host`` contain whole packets from and to the kernels that move them from and to memory;
    ``tlast`` ends a packet. Every stream passes two register stages, for crossings between dies.
    The stages keep their packets through a reset of the kernel. In reset the kernel accepts no
    beat. Every outgoing packet has its end, even if a reset cuts it.

    Latency 2 cycles more than the NIC's own on each stream; throughput 1 beat per cycle.

    A design may have an attribute ``masters``, entries of :class:`rtl.memory.axi4.MemoryMaster`.
    Each master becomes an AXI4 master after two register stages. The wrapper adds a pointer to its
    addresses. The pointer is an argument of the kernel, the address of XRT's buffer in the master's
    pseudo-channel.

    Parameters: ``nic``, a component with the edges of :class:`rtl.nic.SmartNic` whose framing is
    ``udp``. Raises the exceptions of :func:`gen.shells.masters.check_masters`.

    Ports
    -----
    ap_clk, ap_rst_n: clock, and reset, active low, synchronous.
    s_axi_control_*: AXI4-Lite, :class:`gen.shells.kernel_control.KernelControl`.
    s_axis_net_*, m_axis_net_*, s_axis_host_*, m_axis_host_*: see :data:`STREAMS`.
    m_axi_<name>_*: an AXI4 master for each entry of ``masters``, with 64-bit addresses.
    interrupt: of the kernel, active high.
    """

    def __init__(self, nic: wiring.Component):
        self._nic = nic
        self.masters = masters_of(nic)
        members: dict = {
            "ap_clk": In(1), "ap_rst_n": In(1), "interrupt": Out(1),
            "s_axi_control_awvalid": In(1), "s_axi_control_awaddr": In(KERNEL_ADDRESS_BITS),
            "s_axi_control_awready": Out(1), "s_axi_control_wvalid": In(1),
            "s_axi_control_wdata": In(32), "s_axi_control_wstrb": In(4),
            "s_axi_control_wready": Out(1), "s_axi_control_bvalid": Out(1),
            "s_axi_control_bresp": Out(2), "s_axi_control_bready": In(1),
            "s_axi_control_arvalid": In(1), "s_axi_control_araddr": In(KERNEL_ADDRESS_BITS),
            "s_axi_control_arready": Out(1), "s_axi_control_rvalid": Out(1),
            "s_axi_control_rdata": Out(32), "s_axi_control_rresp": Out(2),
            "s_axi_control_rready": In(1),
        }
        for name, (direction, more) in STREAMS.items():
            forth, back = (In, Out) if direction == "in" else (Out, In)
            fields = {"tdata": BEAT_BITS, "tkeep": BEAT_BYTES, "tlast": 1, "tvalid": 1, **more}
            members |= {f"{name}_{field}": forth(width) for field, width in fields.items()}
            members[f"{name}_tready"] = back(1)
        for master in self.masters:
            name = axi_name(master)
            members |= axi_members(name, master.width, address_bits=GLOBAL_BITS, length_bits=8)
            members |= {f"{name}_{channel}{field}": Out(width) for channel in ("aw", "ar")
                        for field, (width, _value) in _CONSTANT.items()}
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        nic = self._nic
        place_nic(m, nic, self.ap_clk)
        m.domains.sync = sync = ClockDomain("sync")
        reset = Signal(init=1, reset_less=True)
        m.d.sync += reset.eq(~self.ap_rst_n)
        m.d.comb += [sync.clk.eq(self.ap_clk), sync.rst.eq(reset)]
        m.submodules.socket_check = check = SocketCheck(_DEST_BITS)
        self._arrive(m, "s_axis_net", nic.net_rx, "net_rx", check)
        m.d.comb += check.socket.eq(self.s_axis_net_tdest)
        self._arrive(m, "s_axis_host", nic.host_rx, "host_rx")
        self._depart(m, "m_axis_host", nic.host_tx, "host_tx")
        beat = self._depart(m, "m_axis_net", nic.net_tx, "net_tx")
        self._address(m, beat)
        self._memory(m, nic, self._control(m, nic))
        time = Signal(32)
        m.d.sync += time.eq(time + 1)
        m.d.comb += [nic.time.eq(time), nic.tap.ready.eq(1)]
        return m

    def _arrive(self, m, name: str, edge, stages: str, check: SocketCheck | None = None) -> None:
        into, awake = RegisterStages(Beat), ~ResetSignal()
        m.submodules[stages] = without_reset(into)
        if check is not None:
            wiring.connect(m, check.o, into.i)
        first = into.i if check is None else check.i
        beat = first.payload
        m.d.comb += [
            first.valid.eq(getattr(self, f"{name}_tvalid") & awake),
            getattr(self, f"{name}_tready").eq(first.ready & awake), beat.err.eq(0),
            *(getattr(beat, field).eq(getattr(self, f"{name}_t{field}"))
              for field in ("data", "keep", "last")),
        ]
        wiring.connect(m, into.o, edge)

    def _depart(self, m, name: str, edge, stages: str):
        out = RegisterStages(Beat)
        m.submodules[stages] = without_reset(out)
        wiring.connect(m, edge, out.i)
        beat = out.o.payload
        m.d.comb += [
            getattr(self, f"{name}_tvalid").eq(out.o.valid),
            out.o.ready.eq(getattr(self, f"{name}_tready")),
            *(getattr(self, f"{name}_t{field}").eq(getattr(beat, field))
              for field in ("data", "keep", "last")),
        ]
        return out.o

    def _address(self, m, out) -> None:
        """Set a packet's socket, on every beat, to the destination node in its header."""
        field = HeaderBeat["ember"]
        start = field.offset + field.shape["destination"].offset
        # A packet continues through a reset, and so does its socket.
        inside, held, now = Signal(), Signal(NODE_BITS), Signal(NODE_BITS)
        m.d.comb += now.eq(out.payload.data[start:start + NODE_BITS])
        with m.If(out.valid & out.ready):
            m.d.nic += inside.eq(~out.payload.last)
            with m.If(~inside):
                m.d.nic += held.eq(now)
        with m.If(inside):
            m.d.comb += self.m_axis_net_tdest.eq(held)
        with m.Else():
            m.d.comb += self.m_axis_net_tdest.eq(now)

    def _memory(self, m, nic, control: KernelControl) -> None:
        """Connect the masters, each offset by its pointer."""
        for k, master in enumerate(self.masters):
            name, near = axi_name(master), getattr(nic, master.name)
            m.submodules[f"{master.name}_stages"] = stages = Shared(
                MemoryStages(master.width, _GLOBAL), f"memory_stages_{master.width}",
                has_reset=True)
            for channel in ("aw", "ar"):
                own, out = getattr(near, channel), getattr(stages.i, channel)
                m.d.comb += [
                    out.payload.address.eq(own.payload.address + getattr(control, f"pointer{k}")),
                    out.payload.more.eq(own.payload.more), out.payload.id.eq(own.payload.id),
                    out.valid.eq(own.valid), own.ready.eq(out.ready),
                    *(getattr(self, f"{name}_{channel}{field}").eq(value)
                      for field, (_width, value) in _CONSTANT.items()),
                ]
            for channel in ("w", "b", "r"):
                wiring.connect(m, getattr(near, channel), getattr(stages.i, channel))
            connect_axi(m, self, name, stages.o)

    def _control(self, m, nic) -> KernelControl:
        m.submodules.kernel_control = control = KernelControl(len(self.masters))
        connect_bus(m, self, "s_axi_control", control.s)
        m.d.comb += control.s.wstrb.eq(self.s_axi_control_wstrb)
        m.d.comb += [
            Cat(control.s.awaddr, control.s_awaddr_high).eq(self.s_axi_control_awaddr),
            Cat(control.s.araddr, control.s_araddr_high).eq(self.s_axi_control_araddr),
            control.taken.eq(nic.host_rx.valid & nic.host_rx.ready & nic.host_rx.payload.last),
            control.idle.eq(~nic.working), self.interrupt.eq(control.interrupt),
        ]
        wiring.connect(m, control.m, nic.csr)
        return control
