"""Pool room: how many beats of the pool each peer's packets take, and whether another may come."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram, sweep
from rtl.network.link.frame_pool import FramePool
from rtl.network.link.packets import Given

__all__ = ["PoolRoom"]


class PoolRoom(wiring.Component):
    """Say whether the largest packet to a peer finds beats in the pool.

    Each peer has the beats of one largest packet for itself; those beyond come from a part that all
    share. No peer has more than half of the pool, unless its first packet is longer. A packet
    claims the beats of the largest when it is let in, and keeps as many as it has when it is whole.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``nodes``; ``beats`` of the pool; ``most`` beats of a packet.

    Ports
    -----
    node: whose packet asks; fits: there is room for it, combinational. There is then until a claim,
        though ``fits`` may fall for three cycles: a packet that is kept counts as a claim and as
        its beats until both counts are made.
    claim: a packet is let in.
    kept: event: a packet with a claim is whole, and keeps ``beats``.
    freed: stream of :func:`rtl.network.link.packets.Given`, beats given back.
    held: a node; none: none of its packets that were kept has beats, combinational.
    idle: no count is on its way.

    Raises ``ValueError`` if the peers' own beats are more than the pool.
    """

    LATENCY = {("beats given back", "room"): 4}
    RATE = "1 packet kept or given back per cycle"

    def __init__(self, nodes: int, beats: int, most: int):
        self._nodes, self._beats, self._most = nodes, beats, most
        self._shared = beats - FramePool.SPARE - nodes * most
        if self._shared < 0:
            raise ValueError(f"beats must be at least {nodes * most + FramePool.SPARE} for packets "
                             f"of {most} beats to {nodes} nodes, not {beats!r}")
        given = Given(most)
        super().__init__({
            "node": In(NODE_BITS), "fits": Out(1), "claim": In(1),
            "kept": In(data.StructLayout({"valid": 1, **given.members})),
            "freed": In(stream.Signature(given)), "held": In(NODE_BITS), "none": Out(1),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        most, bits = self._most, range(self._beats + 1)
        address, swept = sweep(m, self._nodes)
        m.submodules.used = used = Ram(len(Signal(bits)), self._nodes, latency=0)
        m.submodules.used_copy = asked = Ram(len(Signal(bits)), self._nodes, latency=0)
        m.submodules.used_held = held = Ram(len(Signal(bits)), self._nodes, latency=0)
        # Stage 1: the event; it changes the count of its peer.
        event = Signal(data.StructLayout({
            "valid": 1, "kept": 1, "node": NODE_BITS, "beats": range(most + 1)}))
        given = Mux(self.kept.valid, self.kept.beats, self.freed.payload.beats)
        before, after = Signal(bits), Signal(bits)
        m.d.comb += [
            self.freed.ready.eq(~self.kept.valid & swept),
            used.read_addr.eq(event.node), asked.read_addr.eq(self.node),
            held.read_addr.eq(self.held), self.none.eq(held.read_data == 0),
            before.eq(used.read_data),
            after.eq(Mux(event.kept, before + event.beats, before - event.beats)),
        ]
        m.d.sync += [
            event.valid.eq(self.kept.valid | (self.freed.valid & self.freed.ready)),
            event.kept.eq(self.kept.valid), event.beats.eq(given),
            event.node.eq(Mux(self.kept.valid, self.kept.node, self.freed.payload.node)),
        ]
        for ram in (used, asked, held):
            m.d.comb += [
                ram.write_en.eq(event.valid | ~swept),
                ram.write_addr.eq(Mux(swept, event.node, address)),
                ram.write_data.eq(Mux(swept, after, 0)),
            ]
        # Stages 2 and 3: by how much it changes the part that all share.
        stage = data.StructLayout({"valid": 1, "kept": 1})
        track = [Signal(stage, name=f"track{k}") for k in range(2)]
        was, now = Signal(bits, reset_less=True), Signal(bits, reset_less=True)
        old, new = (Signal(signed(len(was) + 1), name=name, reset_less=True)
                    for name in ("old", "new"))
        m.d.sync += [
            track[0].eq(event), track[0].valid.eq(event.valid),
            track[0].kept.eq(event.kept), track[1].eq(track[0]), was.eq(before), now.eq(after),
            old.eq(was - most), new.eq(now - most),
        ]
        beyond = Signal(signed(len(old)))
        m.d.comb += beyond.eq(Mux(new < 0, 0, new) - Mux(old < 0, 0, old))
        shift, settles, moves = Signal.like(beyond), Signal(), Signal()
        m.d.sync += [shift.eq(Mux(track[1].valid, beyond, 0)), moves.eq(track[1].valid),
                     settles.eq(track[1].valid & track[1].kept)]
        # Stage 4: the part that all share, less what may be taken of it with one more packet: below
        # 0 if there is room. What is claimed counts as the shared part's and as of every peer.
        half = max(self._beats // 2, most)
        wide = signed(len(old) + 1)
        shared, own = Signal(wide, init=most - self._shared - 1), Signal(wide, init=most - half - 1)
        claims, step = Signal(range(64)), Signal(signed(len(Signal(range(most + 1))) + 1))
        m.d.comb += step.eq(Mux(self.claim, Mux(settles, 0, most), Mux(settles, -most, 0)))
        m.d.sync += [
            shared.eq(shared + shift + step), own.eq(own + step),
            claims.eq(claims + self.claim - settles),
        ]
        first, within = Signal(), Signal()
        m.d.comb += [
            first.eq((asked.read_data == 0) & (claims == 0)),
            within.eq((asked.read_data + own) < 0),
            self.fits.eq(swept & (first | ((shared < 0) & within))),
            self.idle.eq(swept & ~event.valid & ~track[0].valid & ~track[1].valid & ~moves),
        ]
        return m
