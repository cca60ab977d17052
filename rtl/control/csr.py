"""Register block: identity, configuration, control, table descriptors, and every counter."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.control.axi_lite import AxiLite, AxiLiteSlave
from rtl.control.registers import (
    CHANNEL_BASE,
    NEXT_NODE,
    TABLE_BASE,
    TABLE_WORDS,
    Register,
    register_map,
)
from rtl.formats import NODE_BITS, TABLE_BITS
from rtl.monitor.channels import channel_state
from rtl.monitor.counters import COUNTER_BITS

__all__ = ["Register", "RegisterBlock"]

_GROUP_BITS = 4
"""log2 of the words in a group: a register of the read path selects one word of its group."""


class RegisterBlock(wiring.Component):
    """The registers of :func:`rtl.control.registers.register_map` behind an AXI4-Lite slave.

    A write changes nothing and is answered SLVERR if the value is out of bounds, the register is
    read-only, or the address is unused. A read of a write-only register or unused address is
    answered SLVERR too. Byte strobes are supported: a write merges its bytes with the register's
    value before the bounds are checked. Write the words of a table descriptor whole. The two lowest
    address bits are ignored.

    To change a descriptor in use, write 0 to its word 0 (``valid``) first, and the new word 0 last:
    each word takes effect when it is written.

    While ``counters_hold`` is 1, reads of counters return a snapshot of one cycle, and the counters
    continue. The upper half of a 64-bit counter is one cycle older.

    The answer to a write of a table word is delayed while ``table_ready`` is 0.

    Parameters: ``config``; ``counters``, layout of each block's counters by block name.

    Members
    -------
    registers: list of :class:`rtl.control.registers.Register`, by ascending address.

    Ports
    -----
    csr: AXI4-Lite slave, 16-bit byte addresses, see :data:`rtl.control.axi_lite.AxiLite`.
    counters: struct of every block's counters. channels: input
        :func:`rtl.monitor.channels.channel_state`.
    lookup_next_node: destination of the next lookups packet. flushing: caches that are being
        emptied.
    link_given_up (``config.link``): a bit for each node that was given up. link_rejoins: event:
        ``link_rejoin`` was written in the cycle before. link_rejoining: the rejoin is in progress;
        writes to ``link_rejoin`` are rejected.
    table_write_en, table_write_table, table_write_word, table_write_data: a descriptor word is
        written in this cycle, see :class:`rtl.keys.owner_split.OwnerSplit`.
    table_ready: descriptors may be written.
    node, nodes, vector_beats, vector_packing, pooling_mean, interaction_mode, interaction_itself,
        local_cache_enable, local_cache_sets, dedupe_enable, request_batch, request_timeout,
        lookup_timeout, vector_timeout, result_timeout, lookup_window, output_queues, lookup_share,
        step_floor, ip_base, udp_port: the control registers.
    training, overtake, local_reduction, gradient_partials, optimizer, learning_rate, epsilon,
        gradient_timeout, gradient_window, gradient_share (``config.training``), gpu_updates (with
        ``config.owner_bags`` too): registers of the gradient path.
    link_epoch, link_delay, link_timeout_first, link_timeout_least, link_timeout_most, link_tries,
        link_rejoin (``config.link``): registers of the reliable link.
    bag_window, bag_share, bag_timeout, bag_batch, pooling_by_table (``config.owner_bags``):
        registers of owner pooling.
    mac_base: 48 bits, from ``mac_base_low`` and ``mac_base_high``.
    idle: no access in progress.

    Raises ``TypeError``, ``ValueError`` as :func:`rtl.control.registers.register_map` does.
    """

    LATENCY = {
        ("read", "answer"): 5,
        ("write", "answer"): 6,
    }
    RATE = "1 read and 1 write at a time"

    def __init__(self, config: NicConfig, counters: dict[str, data.StructLayout]):
        self.registers = register_map(config, counters)
        self._layouts = counters
        controls = {
            r.name: Out(r.width, init=r.reset) for r in self.registers
            if r.access == "rw" and r.name != "table_index" and not r.name.startswith("mac_base")}
        super().__init__({
            "csr": In(AxiLite), "counters": In(data.StructLayout(counters)),
            "channels": In(channel_state(*config.optional)),
            "lookup_next_node": In(NODE_BITS), "flushing": In(2),
            **({"link_given_up": In(config.nodes), "link_rejoins": Out(1),
                "link_rejoining": In(1)} if config.link else {}),
            "table_write_en": Out(1), "table_write_table": Out(TABLE_BITS),
            "table_write_word": Out(3), "table_write_data": Out(32),
            "table_ready": In(1, init=1), "mac_base": Out(48), **controls, "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.slave = slave = AxiLiteSlave()
        wiring.connect(m, wiring.flipped(self.csr), slave.bus)
        writable = {r: Signal(r.width, name=r.name, init=r.reset)
                    for r in self.registers if r.access == "rw"}
        by_name = {r.name: signal for r, signal in writable.items()}
        readable: dict[int, Signal | C] = {}
        words = self._hold(m, by_name["counters_hold"])
        for register in self.registers:
            if register in writable:
                value = writable[register]
            elif "." in register.name:
                value = words[register.name]
            elif register.name == "lookup_next_node":
                value = self.lookup_next_node
            elif register.name == "flushing":
                value = self.flushing
            elif register.name.startswith("link_given_up"):
                value = self.link_given_up[32 * int(register.name[13:]):][:32]
            elif register.name == "link_rejoining":
                value = self.link_rejoining
            elif CHANNEL_BASE <= register.address < NEXT_NODE:
                state = getattr(self.channels, register.name[8:13])
                value = state.word_select(int(register.name[13:]), 32)
            else:
                value = C(register.reset, 32)
            if register.access != "wo":
                readable[register.address // 4] = value
        for name, signal in by_name.items():
            if name in self.signature.members:
                m.d.comb += getattr(self, name).eq(signal)
        m.d.comb += [
            self.mac_base.eq(Cat(by_name["mac_base_low"], by_name["mac_base_high"])),
            self.table_write_table.eq(by_name["table_index"]),
            self.idle.eq(slave.idle),
        ]
        self._read(m, slave, readable)
        self._write(m, slave, writable)
        return m

    def _hold(self, m: Module, hold: Signal) -> dict[str, Value]:
        """Return the words of all counters by register name; they are constant while ``hold`` is 1.

        All words freeze in the same cycle. Each block's words have their own copy of ``hold``.
        """
        words: dict[str, Value] = {}
        for block, layout in self._layouts.items():
            held = Signal(name=f"{block}_hold", attrs={"keep": 1})
            m.d.sync += held.eq(hold)
            for name in layout.members:
                live = Value.cast(self.counters[block][name])
                if len(live) > COUNTER_BITS:
                    # The upper half is one cycle late.
                    low = Signal(COUNTER_BITS, reset_less=True, name=f"{block}_{name}_low")
                    m.d.sync += low.eq(live[:COUNTER_BITS])
                    live = Cat(low, live[COUNTER_BITS:])
                kept = Signal(len(live), reset_less=True, name=f"{block}_{name}_held")
                with m.If(~held):
                    m.d.sync += kept.eq(live)
                words[f"{block}.{name}"] = kept[:32]
                words[f"{block}.{name}_high"] = kept[32:]
        return words

    def _read(self, m: Module, slave, readable) -> None:
        """Select in three steps: the group, the word within each group, then among the groups.

        Each group has its own copy of the word number, so that no copy drives the selectors of all
        words.
        """
        size = 1 << _GROUP_BITS
        found, exists = C(0, 32), C(0, 1)
        for group in sorted({word // size for word in readable}):
            value = Signal(32, reset_less=True, name=f"group{group}")
            there, asked = (Signal(reset_less=True, name=f"{name}{group}")
                            for name in ("there", "asked"))
            place = Signal(_GROUP_BITS, reset_less=True, name=f"place{group}")
            m.d.sync += [asked.eq(0), value.eq(0), there.eq(0)]
            with m.If(slave.read & (slave.read_word[_GROUP_BITS:] == group)):
                m.d.sync += [asked.eq(1), place.eq(slave.read_word[:_GROUP_BITS])]
            with m.If(asked), m.Switch(place):
                for word, source in readable.items():
                    if word // size == group:
                        with m.Case(word % size):
                            m.d.sync += [value.eq(source), there.eq(1)]
            found, exists = found | value, exists | there
        read_data, here = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.sync += [read_data.eq(found), here.eq(exists)]
        with m.FSM(name="read"):
            with m.State("WAIT"), m.If(slave.read):
                m.next = "GROUP"
            with m.State("GROUP"):
                m.next = "WORD"
            with m.State("WORD"):
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += slave.read_done.eq(1)
                m.next = "WAIT"
        m.d.comb += [slave.read_data.eq(read_data), slave.read_error.eq(~here)]

    def _write(self, m: Module, slave, writable) -> None:
        """Merge the bytes with the old value, check the bounds, then write."""
        first = TABLE_BASE // 4 + 1
        own, low, high, merged = (Signal(32, reset_less=True, name=n)
                                  for n in ("own", "low", "high", "merged"))
        is_control, is_table, refused = (Signal(reset_less=True, name=n)
                                         for n in ("is_control", "is_table", "refused"))
        whole = Signal()
        m.d.comb += [
            whole.eq(slave.write_strobe.all()),
            self.table_write_data.eq(slave.write_data),
            self.table_write_word.eq(slave.write_word - first),
            slave.write_error.eq(refused),
        ]
        # Decode the written register: one bit per register, a cycle before its value.
        picked = {register: Signal(reset_less=True, name=f"{register.name}_picked")
                  for register in writable}
        values = C(0, 3 * 32)
        m.d.sync += [picked[register].eq(slave.write_word == register.address // 4)
                     for register in writable]
        for register, signal in writable.items():
            own_values = Cat(C(register.low, 32), C(register.high, 32), signal)
            values |= Mux(picked[register], own_values, 0)
        by_name, barred = {register.name: register for register in writable}, C(0, 1)
        if "link_rejoin" in by_name:
            rejoins, node = picked[by_name["link_rejoin"]], writable[by_name["node"]]
            barred = rejoins & (self.link_rejoining | (merged[8:16] == node))
            m.d.sync += self.link_rejoins.eq(slave.write_done & rejoins & is_control & ~refused)
        with m.FSM(name="write"):
            with m.State("WAIT"), m.If(slave.write):
                m.next = "PICK"
            with m.State("PICK"):
                m.next = "MERGE"
                m.d.sync += [Cat(low, high, own).eq(values),
                             is_control.eq(Cat(picked.values()).any()), is_table.eq(0)]
                with m.Switch(slave.write_word):
                    with m.Case(*range(first, first + TABLE_WORDS)):
                        m.d.sync += is_table.eq(1)
            with m.State("MERGE"):
                m.next = "CHECK"
                for byte in range(4):
                    m.d.sync += merged.word_select(byte, 8).eq(Mux(
                        slave.write_strobe[byte], slave.write_data.word_select(byte, 8),
                        own.word_select(byte, 8)))
            with m.State("CHECK"):
                m.next = "DONE"
                m.d.sync += refused.eq(Mux(
                    is_table, slave.write_strobe.any() & ~whole,
                    ~is_control | barred | (merged < low) | (merged > high)))
            with m.State("DONE"):
                with m.If(~is_table | self.table_ready):
                    m.next = "WAIT"
                    m.d.comb += [slave.write_done.eq(1), self.table_write_en.eq(is_table & whole)]
                with m.If(is_control & ~refused):
                    for register, signal in writable.items():
                        with m.If(picked[register]):
                            m.d.sync += signal.eq(merged)
