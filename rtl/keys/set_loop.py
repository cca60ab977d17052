"""SetLoop: looks up keys in sets, one per cycle; each lookup may change its set."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.keys.hashing import scale
from rtl.keys.one_hot import any_of
from rtl.memory import Ram

__all__ = ["SetLoop"]

WINDOW = 4
"""Number of preceding lookups whose changes are not yet in the RAM when a set is read."""


class SetLoop(wiring.Component):
    """Read the set of a key, let the user decide, and write the set: in order, without stalls.

    Each way of a set has a word (key and label), written when the way is *placed*, and user bits. A
    set also has user bits, its state. Each way has its own RAM of words, so that placing a key does
    not rewrite the other ways. One RAM contains the bits; each lookup writes it.

    When a set is read, the changes of the last four lookups are not yet in the RAMs. They are
    forwarded: the bits of the last lookup that wrote the same set, and, per way, whether the key
    placed last is equal. Forwarding from the lookup that decides in the same cycle is the only loop
    of this block: ``now`` to ``after`` to the registers behind ``now``.

    None of the next four lookups of a set may place the same way again. The user guarantees this: a
    way that was just placed waits for its vector, or is not free.

    Stages: 1 hash, 2 set, 3 and 4 RAM, 4 also compares, 5 ``now`` and ``after``, 6 ``o``; registers
    of stage 6 write the RAMs.

    Parameters: ``key_bits``; ``context``, shape of the data beside a lookup; ``sets``, ``ways``;
    ``hash_key``, function from a key to 32 hash bits; ``way``, shape of the user bits of a way (0
    bits: no ports); ``state_bits``; ``label_bits``; ``style`` of the RAMs; ``walked``: sets are
    also read from outside, a cycle after ``read``, else behind the output register of the RAM.

    Ports
    -----
    i: ``valid``, a lookup of ``key`` with ``context``. ``looks``: it may match. ``writes``: it may
        change its set; if 0, ``after`` is ignored.
    limit: sets in use: set = hash[31:8] * limit / 2^24. Change it only while no lookup is inside.
    now: stage 5: ``valid``, ``context``, ``match``, the way that contains the key, one-hot; per way
        ``held``, it contains a key, and ``bits``; ``state``.
    after: the answer in the same cycle: ``placed``, the way that gets the key, one-hot or 0;
        ``bits`` and ``state``, the new values.
    o: stage 6: ``valid``, ``key``, ``context``, ``set``, ``match``, the old ``held``, ``placed``,
        ``label`` of the matching way, ``words`` of all ways as read, the new ``bits`` and
        ``state``.
    label: stage 6: label of the way that is placed.
    reading: set of the lookup that is ``now`` two cycles later. next: ``bits`` of the lookup that
        is ``now`` one cycle later, unless its set is the ``same`` set that changes in this cycle.
    clear, clear_address: empty a set, all bits 0; only while no lookup is inside, or after reset,
        when the contents are undefined.
    walking, read, read_address, line (walked): while ``walking``, sets are read from outside;
        ``keys``, ``held`` and ``bits`` of a set are valid from the cycle after ``read`` on. Only
        while no lookup is inside.
    idle: no lookup inside.
    """

    LATENCY = {("lookup", "now"): 5, ("lookup", "its result"): 6}
    RATE = "1 lookup per cycle, whatever the keys"

    def __init__(self, key_bits: int, context, *, sets: int, ways: int,
                 hash_key: Callable[[Value], Value], way=0, state_bits: int = 0,
                 label_bits: int = 0, style: str, walked: bool = False):
        self._key_bits, self._context, self._sets, self._ways = key_bits, context, sets, ways
        self._hash, self._label_bits = hash_key, label_bits
        self._style, self._walked = style, walked
        address = max(1, ceil_log2(sets))
        self._bits = {"bits": data.ArrayLayout(way, ways)} if Shape.cast(way).width else {}
        self._line = line = {"held": ways, **self._bits, "state": state_bits}
        self._word = word = data.StructLayout({"key": key_bits, "label": label_bits})
        super().__init__({
            "i": In(data.StructLayout({
                "valid": 1, "key": key_bits, "context": context, "looks": 1, "writes": 1})),
            "limit": In(range(sets + 1)),
            "now": Out(data.StructLayout(
                {"valid": 1, "context": context, "match": ways, **line})),
            "after": In(data.StructLayout(
                {"placed": ways, **self._bits, "state": state_bits})),
            "o": Out(data.StructLayout({
                "valid": 1, "key": key_bits, "context": context, "set": address, "match": ways,
                "held": ways, "placed": ways, "label": label_bits,
                "words": data.ArrayLayout(word, ways),
                **self._bits, "state": state_bits})),
            "label": In(label_bits), "reading": Out(address),
            "next": Out(data.StructLayout({"same": 1, **self._bits})),
            "clear": In(1), "clear_address": In(address), "idle": Out(1)} | ({
                "walking": In(1), "read": In(1), "read_address": In(address),
                "line": Out(data.StructLayout({
                    "keys": data.ArrayLayout(key_bits, ways), "held": ways, **self._bits})),
            } if walked else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, sets, behind = self._ways, self._sets, range(1, WINDOW + 1)
        line_layout = data.StructLayout(self._line)

        def stages(name: str, first: int, last: int, shape=1, reset_less: bool = True) -> dict:
            """Return registers by stage; each register loads the value of the stage before."""
            return {k: Signal(shape, name=f"{name}{k}", reset_less=reset_less)
                    for k in range(first, last + 1)}

        valid, writes = (stages("valid", 1, 6, reset_less=False),
                         stages("writes", 1, 7, reset_less=False))
        key, set_ = stages("key", 1, 7, self._key_bits), stages("set", 2, 7, len(self.reading))
        context, looks = stages("context", 1, 6, self._context), stages("looks", 1, 4)
        match, held = stages("match", 5, 6, ways), stages("held", 6, 6, ways)
        words = stages("words", 5, 6, self.o.words.shape())
        placed = stages("placed", 6, 9, ways, reset_less=False)
        written = stages("written", 6, 8, line_layout)
        label = stages("label", 7, 10, self._label_bits)
        line = Signal(line_layout, reset_less=True)
        for chain in (valid, writes, key, set_, context, looks, match, words, placed, written,
                      label):
            m.d.sync += [chain[k].eq(chain[k - 1]) for k in chain if k - 1 in chain]

        # Stages 1 and 2.
        hashed, limit = Signal(32, reset_less=True), Signal(range(sets + 1), reset_less=True)
        m.d.sync += [
            valid[1].eq(self.i.valid), writes[1].eq(self.i.valid & self.i.writes),
            key[1].eq(self.i.key), context[1].eq(self.i.context), looks[1].eq(self.i.looks),
            hashed.eq(self._hash(self.i.key)), set_[2].eq(scale(hashed[8:], limit)),
            limit.eq(Mux(self.limit > sets, sets, self.limit)),
        ]

        # The RAMs, written in stage 6.
        wrote, write_address = Signal(), Signal(len(self.reading), reset_less=True)
        m.d.sync += [wrote.eq(self.clear | writes[5]),
                     write_address.eq(Mux(self.clear, self.clear_address, set_[5]))]
        stored = Signal(line_layout)
        self._memory(m, "lines", line_layout.size, set_[2], stored, wrote, write_address,
                     written[6])
        fresh = [self._memory(m, f"words{w}", self._word.size, set_[2], Signal(
            self._word, name=f"word{w}"), placed[6][w], write_address, Cat(key[6], self.label))
            for w in range(ways)]

        # Stage 3: find lookups ahead that change the same set, or have the same key.
        same_set, same_key, later_key = (
            {k: Signal(name=f"{name}{k}", reset_less=True) for k in behind}
            for name in ("same_set", "same_key", "later_key"))
        for k in behind:
            m.d.sync += [same_set[k].eq((set_[3] == set_[3 + k]) & writes[3 + k]),
                         same_key[k].eq(key[3] == key[3 + k]), later_key[k].eq(same_key[k])]

        # Stage 4: compare, and forward values newer than the RAMs.
        placing, decided = Signal(ways), Signal(line_layout)
        m.d.comb += [
            placing.eq(self.after.placed & writes[5].replicate(ways)),
            decided.held.eq(line.held | self.after.placed), decided.state.eq(self.after.state),
            *self._same_bits(decided, self.after),
        ]
        newest = stored
        for k in reversed(behind[1:]):
            newest = Mux(same_set[k], written[4 + k], newest)
        upcoming = Signal(line_layout)
        m.d.comb += [upcoming.eq(newest), self.next.same.eq(same_set[1]),
                     *self._same_bits(self.next, upcoming)]
        m.d.sync += line.eq(Mux(same_set[1], decided, upcoming))
        for w in range(ways):
            over = [same_set[k] & placed[4 + k][w] for k in behind[1:]]
            equal = [same_set[k] & placed[4 + k][w] & same_key[k] for k in behind[1:]]
            # Combine the late signals, of a RAM and of the user, last.
            newer_one, older, is_it = (Signal(name=f"{name}{w}") for name in (
                "newer_one", "older", "is_it"))
            m.d.comb += [
                newer_one.eq(looks[4] & any_of(equal)),
                older.eq(looks[4] & ~any_of(over) & stored.held[w]),
                is_it.eq(fresh[w].key == key[4]),
            ]
            m.d.sync += match[5][w].eq(
                Mux(same_set[1] & self.after.placed[w], looks[4] & same_key[1],
                    newer_one | (older & is_it)))
        m.d.sync += words[5].eq(Cat(fresh))

        # Stage 5: the user decides.
        m.d.comb += [
            self.now.valid.eq(valid[5]), self.now.context.eq(context[5]),
            self.now.match.eq(match[5]), self.now.held.eq(line.held),
            *self._same_bits(self.now, line),
            self.now.state.eq(line.state), self.reading.eq(set_[3]),
        ]
        m.d.sync += [placed[6].eq(placing), written[6].eq(Mux(self.clear, 0, decided)),
                     held[6].eq(line.held)]

        # Stage 6: the RAM lacks the label of a way that a lookup ahead has placed.
        passed = {k: Signal(name=f"passed{k}", reset_less=True) for k in behind}
        kept = Signal(ways, reset_less=True)
        newer = [later_key[k] & placed[5 + k].any() for k in behind]
        m.d.sync += [*(passed[k].eq(newer[k - 1]) for k in behind),
                     kept.eq(Mux(any_of(newer), 0, match[5])), label[7].eq(self.label)]
        o = self.o
        m.d.comb += [
            o.valid.eq(valid[6]), o.key.eq(key[6]), o.context.eq(context[6]), o.set.eq(set_[6]),
            o.match.eq(match[6]), o.held.eq(held[6]), o.placed.eq(placed[6]),
            o.words.eq(words[6]), *self._same_bits(o, written[6]), o.state.eq(written[6].state),
            o.label.eq(any_of([*(Mux(passed[k], label[6 + k], 0) for k in behind),
                             *(Mux(kept[w], words[6][w].label, 0) for w in range(ways))])),
            self.idle.eq(~Cat(valid.values()).any()),
        ]
        if self._walked:
            m.d.comb += [self.line.keys[w].eq(self._early[f"words{w}"][:self._key_bits])
                         for w in range(ways)]
            early = data.View(line_layout, self._early["lines"])
            m.d.comb += [self.line.held.eq(early.held), *self._same_bits(self.line, early)]
        return m

    def _same_bits(self, target: data.View, source: data.View) -> list:
        """Return statements that copy the user bits of the ways from ``source`` to ``target``."""
        return [target.bits.eq(source.bits)] if self._bits else []

    def _memory(self, m: Module, name: str, width: int, set_: Value, data_: Signal, write_en: Value,
                address: Value, word: Value) -> Signal:
        """Add a RAM of one word per set, read two cycles behind ``set_`` into ``data_``."""
        m.submodules[name] = ram = Ram(
            width, self._sets, style=self._style, latency=1 if self._walked else 2)
        m.d.comb += [ram.write_en.eq(write_en), ram.write_addr.eq(address),
                     ram.write_data.eq(word), ram.read_addr.eq(set_)]
        if self._walked:
            m.d.comb += ram.read_en.eq(Mux(self.walking, self.read, 1))
            with m.If(self.walking):
                m.d.comb += ram.read_addr.eq(self.read_address)
            last = Signal(width, name=f"{name}_last", reset_less=True)
            m.d.sync += last.eq(ram.read_data)
            m.d.comb += data_.eq(last)
            self._early = getattr(self, "_early", {}) | {name: ram.read_data}
        else:
            m.d.comb += data_.eq(ram.read_data)
        return data_
