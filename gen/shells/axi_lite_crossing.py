"""AXI4-Lite clock crossing from a shell's control bus to the NIC."""

from amaranth.hdl import DomainRenamer, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from gen.shells.axi_lite_master import AxiLiteMaster
from gen.shells.held_crossing import HeldCrossing
from rtl.control.axi_lite import AxiLite, AxiLiteSlave

__all__ = ["AxiLiteCrossing"]


class AxiLiteCrossing(wiring.Component):
    """Transfer single accesses between two unrelated clock domains.

    The block holds an access in registers while a toggle crosses through two flip-flops. The answer
    returns in the same way. Only the toggles need synchronizers, because the held data are stable
    when the other side samples them (:class:`gen.shells.held_crossing.HeldCrossing`). Both domains
    must be in reset together.

    Only ``address_bits`` of an address are used. The block answers SLVERR to addresses beyond the
    NIC's registers. It performs one access at a time; a waiting read and a waiting write alternate.
    An access takes at most 8 cycles of either clock besides the NIC's own latency.

    Parameters
    ----------
    address_bits: address bits of the shell's window, more than those of
        :data:`rtl.control.axi_lite.AxiLite`.
    domain: clock domain of the shell's side. The NIC's side is ``sync``.

    Ports
    -----
    s: :data:`rtl.control.axi_lite.AxiLite`, slave side, in ``domain``.
    s_awaddr_high, s_araddr_high: further address bits, valid with the addresses of ``s``.
    m: :data:`rtl.control.axi_lite.AxiLite`, master side, in ``sync``.
    """

    def __init__(self, address_bits: int = 20, *, domain: str = "axil"):
        own = AxiLite.members["awaddr"].shape
        if isinstance(address_bits, bool) or not isinstance(address_bits, int):
            raise TypeError(f"address_bits must be an integer, not {address_bits!r}")
        if not own < address_bits <= 64:
            raise ValueError(f"address_bits must be between {own + 1} and 64, "
                             f"not {address_bits!r}")
        self._domain = domain
        super().__init__({
            "s": In(AxiLite), "m": Out(AxiLite),
            "s_awaddr_high": In(address_bits - own), "s_araddr_high": In(address_bits - own)})

    def elaborate(self, platform) -> Module:
        m = Module()
        request = tuple(Signal(width, name=f"held_{name}") for name, width in (
            ("write", 1), ("word", len(self.m.awaddr) - 2), ("data", 32), ("strobe", 4)))
        answer = tuple(Signal(width, name=f"held_{name}") for name, width in (
            ("answer", 32), ("error", 1)))
        asked, served = Signal(name="asked"), Signal(name="served")
        asked_here, served_here = Signal(), Signal()
        m.submodules.asked_sync = FFSynchronizer(asked, asked_here, reset_less=False)
        m.submodules.served_sync = FFSynchronizer(
            served, served_here, o_domain=self._domain, reset_less=False)
        answered, taking = Signal(name="answered"), Signal(name="taking")
        m.submodules.request_crossing = request_crossing = HeldCrossing(request, taking)
        m.submodules.answer_crossing = answer_crossing = HeldCrossing(
            answer, answered, domain=self._domain)
        self._ask(m, request, asked, served_here, answered, answer_crossing.taken)
        self._serve(m, request_crossing.taken, taking, asked_here, served, answer)
        return m

    def _ask(self, m, request, asked, served, answered, answer) -> None:
        """Shell side: hold an access, signal the other side, wait for the answer."""
        write, word, data, strobe = request
        taken_answer, taken_error = answer
        m.submodules.slave = slave = DomainRenamer(self._domain)(AxiLiteSlave())
        wiring.connect(m, wiring.flipped(self.s), slave.bus)
        step = m.d[self._domain]
        # Whether the held address of a write or a read is beyond the NIC's registers.
        beyond_write, beyond_read, wrote, refuse = (
            Signal(name=name) for name in ("beyond_write", "beyond_read", "wrote", "refuse"))
        with m.If(self.s.awvalid & self.s.awready):
            step += beyond_write.eq(self.s_awaddr_high.any())
        with m.If(self.s.arvalid & self.s.arready):
            step += beyond_read.eq(self.s_araddr_high.any())
        writes, failed = Signal(), Signal(name="failed")
        m.d.comb += [writes.eq(slave.write & ~(slave.read & wrote)),
                     failed.eq(refuse | taken_error),
                     slave.read_data.eq(Mux(refuse, 0, taken_answer)),
                     slave.read_error.eq(failed), slave.write_error.eq(failed)]
        with m.FSM(domain=self._domain, name="ask"):
            with m.State("WAIT"), m.If(slave.write | slave.read):
                step += [
                    write.eq(writes), wrote.eq(writes),
                    word.eq(Mux(writes, slave.write_word, slave.read_word)),
                    data.eq(slave.write_data), strobe.eq(slave.write_strobe),
                    refuse.eq(Mux(writes, beyond_write, beyond_read)),
                ]
                m.next = "SEND"
            with m.State("SEND"):
                with m.If(refuse):
                    m.next = "ANSWER"
                with m.Else():
                    step += asked.eq(~asked)
                    m.next = "CROSSING"
            with m.State("CROSSING"), m.If(served == asked):
                m.d.comb += answered.eq(1)
                m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [slave.write_done.eq(write), slave.read_done.eq(~write)]
                # Wait a cycle, in which the slave still shows the answered access.
                m.next = "DONE"
            with m.State("DONE"):
                m.next = "WAIT"

    def _serve(self, m, request, taking, asked, served, held) -> None:
        """NIC side: perform the access, hold the answer, signal the other side."""
        write, word, data, strobe = request
        answer, error = held
        m.submodules.master = master = AxiLiteMaster()
        wiring.connect(m, master.bus, wiring.flipped(self.m))
        m.d.comb += [master.write.eq(write), master.word.eq(word),
                     master.data.eq(data), master.strobe.eq(strobe)]
        with m.FSM(name="serve"):
            with m.State("WAIT"), m.If(asked != served):
                m.d.comb += taking.eq(1)
                m.next = "UNDER WAY"
            with m.State("UNDER WAY"):
                m.d.comb += master.wanted.eq(1)
                with m.If(master.done):
                    m.d.sync += [answer.eq(master.answer), error.eq(master.error)]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.sync += served.eq(asked)
                m.next = "WAIT"
