"""A substitute for the set loop in proofs: one set, without pipeline delay."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from rtl.keys.set_loop import WINDOW, SetLoop

__all__ = ["plain_loop"]


def plain_loop() -> tuple[type, Signal]:
    """Return a class with the ports of :class:`rtl.keys.set_loop.SetLoop`: one set in registers.

    A lookup is ``now`` in the cycle after its arrival, and at ``o`` one cycle later.
    ``test_set_loop`` proves that the real loop has the same outputs, at later times, for a user
    that does not place a way that one of the four previous lookups has placed. Also return a signal
    that is 1 if such a way is placed. Sets are cleared while no lookup is inside, so earlier
    placements do not count.
    """
    again = Signal(name="placed_again")

    class PlainLoop(SetLoop):
        def elaborate(self, platform) -> Module:
            m = Module()
            ways, line = self._ways, Signal(data.StructLayout(self._line))
            keys = [Signal(self._key_bits, name=f"key{w}") for w in range(ways)]
            labels = [Signal(self._label_bits, name=f"label{w}") for w in range(ways)]
            ages = [Signal(range(WINDOW + 1), name=f"age{w}") for w in range(ways)]
            here, then = Signal(self.i.shape()), Signal(self.o.shape())
            now, after, o, placed = self.now, self.after, self.o, Signal(ways)
            m.d.comb += [
                now.valid.eq(here.valid), now.context.eq(here.context), now.held.eq(line.held),
                *self._same_bits(now, line), now.state.eq(line.state),
                placed.eq(Mux(here.valid & here.writes, after.placed, 0)),
                o.eq(then), self.idle.eq(~here.valid & ~then.valid),
                again.eq(sum((placed[w] & (ages[w] != 0) for w in range(ways)), 0) != 0)]
            m.d.sync += [
                here.eq(self.i), then.valid.eq(here.valid), then.key.eq(here.key),
                then.context.eq(here.context), then.match.eq(now.match), then.held.eq(line.held),
                then.placed.eq(placed), *self._same_bits(then, after), then.state.eq(after.state),
                *(then.words[w].key.eq(keys[w]) for w in range(ways))]
            with m.If(here.valid & here.writes):
                m.d.sync += [line.held.eq(line.held | placed), *self._same_bits(line, after),
                             line.state.eq(after.state)]
            for w in range(ways):
                m.d.comb += now.match[w].eq(here.looks & line.held[w] & (keys[w] == here.key))
                with m.If(placed[w]):
                    m.d.sync += [keys[w].eq(here.key), ages[w].eq(WINDOW)]
                with m.Elif(here.valid & (ages[w] != 0)):
                    m.d.sync += ages[w].eq(ages[w] - 1)
                with m.If(then.valid & then.placed[w]):
                    m.d.sync += labels[w].eq(self.label)
                with m.If(then.match[w]):
                    m.d.comb += o.label.eq(labels[w])
            with m.If(self.clear):
                m.d.sync += [line.eq(0), *(age.eq(0) for age in ages)]
            return m

    return PlainLoop, again
