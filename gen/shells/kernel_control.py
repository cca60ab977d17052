"""Control registers of a Vitis kernel, and access to the NIC's registers after them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.shells.axi_lite_master import AxiLiteMaster
from rtl.control.axi_lite import ADDRESS_BITS, AxiLite, AxiLiteSlave

__all__ = ["KERNEL_ADDRESS_BITS", "NIC_BASE", "REGISTERS", "KernelControl", "pointer_address"]

KERNEL_ADDRESS_BITS = ADDRESS_BITS + 1
NIC_BASE = 1 << ADDRESS_BITS
"""Byte address at which the NIC's registers begin; the kernel's own are below."""
REGISTERS = {"control": 0x00, "interrupt_global": 0x04, "interrupt_enable": 0x08,
             "interrupt_status": 0x0C, "packets": 0x10}
"""Byte addresses of the kernel's own registers (UG1393, ap_ctrl_hs; arguments from 0x10)."""
_START, _DONE, _IDLE, _READY, _RESTART = 0, 1, 2, 3, 7
_POINTER_BITS = 64


def pointer_address(number: int) -> int:
    """Return the byte address of the low word of pointer ``number``; the high word follows it.

    Arguments of 64 bits are 12 bytes apart, after ``packets`` and its unused word.
    """
    return REGISTERS["packets"] + 8 + 12 * number


class KernelControl(wiring.Component):
    """AXI4-Lite slave with the block control protocol ``ap_ctrl_hs`` of Vitis.

    The NIC runs from its reset on; a run of the kernel only counts packets. The run begins with
    ``ap_start``. It is done when ``packets`` packets have arrived from the host and the NIC has no
    work in progress. Frames for other nodes do not delay the end. A run does not end before the
    sweep that follows a reset. A read of ``ap_done`` clears it; writing 1 toggles a status bit of
    the interrupt.

    With ``pointers``, that many arguments of 64 bits follow ``packets``, see
    :func:`pointer_address`. Each is the address of a master's buffer in global memory. The masters
    must be stopped while the host sets them.

    Byte strobes apply to the kernel's own registers. The block answers SLVERR to other addresses.
    Latency: 3 cycles; for the NIC's registers, 4 cycles and the NIC's own latency.

    Ports
    -----
    s: :data:`rtl.control.axi_lite.AxiLite`, slave side.
    s_awaddr_high, s_araddr_high: 1 for the NIC's registers, valid with the addresses.
    m: :data:`rtl.control.axi_lite.AxiLite`, master side, to the NIC.
    taken: the NIC has accepted a packet of the host.
    idle: the NIC's tables are swept, and the NIC has no work in progress.
    interrupt: interrupt, if enabled.
    pointer0, pointer1, ...: registers of the arguments.

    Parameters: ``pointers``, number of pointers.
    """

    def __init__(self, pointers: int = 0):
        self._pointers = pointers
        super().__init__({
            **{f"pointer{k}": Out(_POINTER_BITS) for k in range(pointers)},
            "s": In(AxiLite), "s_awaddr_high": In(1), "s_araddr_high": In(1), "m": Out(AxiLite),
            "taken": In(1), "idle": In(1), "interrupt": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.slave = slave = AxiLiteSlave()
        m.submodules.master = master = AxiLiteMaster()
        wiring.connect(m, wiring.flipped(self.s), slave.bus)
        wiring.connect(m, master.bus, wiring.flipped(self.m))
        bus = self.s
        write_high, read_high = Signal(name="write_high"), Signal(name="read_high")
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += write_high.eq(self.s_awaddr_high)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += read_high.eq(self.s_araddr_high)
        writing, wrote = Signal(name="writing"), Signal(name="wrote")
        m.d.comb += [
            master.write.eq(writing),
            master.word.eq(Mux(writing, slave.write_word, slave.read_word)),
            master.data.eq(slave.write_data), master.strobe.eq(slave.write_strobe),
        ]
        read, readable = Signal(32, name="read"), Signal(name="readable")
        own_write, own_read = Signal(name="own_write"), Signal(name="own_read")
        with m.FSM(name="control"):
            with m.State("WAIT"), m.If(slave.write | slave.read):
                write = slave.write & ~(slave.read & wrote)
                m.d.sync += [writing.eq(write), wrote.eq(write)]
                with m.If(Mux(write, write_high, read_high)):
                    m.next = "NIC"
                with m.Else():
                    m.next = "OWN"
            with m.State("NIC"):
                m.d.comb += [
                    master.wanted.eq(1),
                    slave.write_done.eq(master.done & writing), slave.write_error.eq(master.error),
                    slave.read_done.eq(master.done & ~writing), slave.read_error.eq(master.error),
                    slave.read_data.eq(master.answer),
                ]
                with m.If(master.done):
                    m.next = "DONE"
            with m.State("OWN"):
                m.d.comb += [
                    own_write.eq(writing), own_read.eq(~writing),
                    slave.write_done.eq(writing), slave.read_done.eq(~writing),
                    slave.read_data.eq(read), slave.read_error.eq(~readable),
                    slave.write_error.eq(~Cat(slave.write_word == word for word in (
                        *(address // 4 for address in REGISTERS.values()),
                        *self._pointer_words())).any()),
                ]
                m.next = "DONE"
            with m.State("DONE"):
                m.next = "WAIT"
        self._registers(m, slave, own_write, own_read, read, readable)
        return m

    def _registers(self, m, slave, write, read, value, readable) -> None:
        running, done, restart, finished = (
            Signal(name=name) for name in ("running", "done", "restart", "finished"))
        enabled, enable, status = Signal(name="enabled"), Signal(2, name="enable"), Signal(
            2, name="status")
        packets, taken = Signal(32, name="packets"), Signal(32, name="taken")
        control = Signal(32)
        m.d.comb += [
            control[_START].eq(running), control[_DONE].eq(done), control[_IDLE].eq(~running),
            control[_READY].eq(done), control[_RESTART].eq(restart),
            finished.eq(running & self.idle & (taken >= packets) & ~self.taken),
            self.interrupt.eq(enabled & (status & enable).any()),
        ]
        with m.If(self.taken):
            m.d.sync += taken.eq(taken + 1)
        values = {"control": control, "interrupt_global": enabled, "interrupt_enable": enable,
                  "interrupt_status": status, "packets": packets}
        data, strobe = slave.write_data, slave.write_strobe
        word = slave.read_word
        with m.Switch(word):
            for name, address in REGISTERS.items():
                with m.Case(address // 4):
                    m.d.comb += [value.eq(values[name]), readable.eq(1)]
            for address, half in self._pointer_words().items():
                with m.Case(address):
                    m.d.comb += [value.eq(half), readable.eq(1)]
        with m.If(read & (word == REGISTERS["control"] // 4)):
            m.d.sync += done.eq(0)
        with m.If(write):
            with m.Switch(slave.write_word):
                with m.Case(REGISTERS["control"] // 4):
                    with m.If(strobe[0]):
                        m.d.sync += restart.eq(data[_RESTART])
                        with m.If(data[_START] & ~running):
                            m.d.sync += [running.eq(1), taken.eq(0)]
                with m.Case(REGISTERS["interrupt_global"] // 4), m.If(strobe[0]):
                    m.d.sync += enabled.eq(data[0])
                with m.Case(REGISTERS["interrupt_enable"] // 4), m.If(strobe[0]):
                    m.d.sync += enable.eq(data[:2])
                with m.Case(REGISTERS["interrupt_status"] // 4), m.If(strobe[0]):
                    m.d.sync += status.eq(status ^ data[:2])
                with m.Case(REGISTERS["packets"] // 4):
                    _write_bytes(m, packets, data, strobe)
                for address, half in self._pointer_words().items():
                    with m.Case(address):
                        _write_bytes(m, half, data, strobe)
        with m.If(finished):
            m.d.sync += [running.eq(restart), done.eq(1), taken.eq(0), status.eq(status | enable)]

    def _pointer_words(self) -> dict[int, Value]:
        """Return the halves of the pointers by word address."""
        return {pointer_address(k) // 4 + high: getattr(self, f"pointer{k}")[32 * high:][:32]
                for k in range(self._pointers) for high in range(2)}


def _write_bytes(m: Module, target: Value, data: Value, strobe: Value) -> None:
    for k in range(4):
        with m.If(strobe[k]):
            m.d.sync += target.word_select(k, 8).eq(data.word_select(k, 8))
