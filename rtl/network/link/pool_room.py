"""Pool room: beats of the pool used by each peer's packets, and room for the next packet."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram, sweep
from rtl.network.link.frame_pool import FramePool
from rtl.network.link.packets import Given

__all__ = ["PoolRoom"]


class PoolRoom(wiring.Component):
    """Report whether the largest packet to a peer finds beats in the pool.

    Each peer has its own share: the beats of one largest packet. Further beats come from a shared
    part. No peer has more than half of the pool, unless its first packet is longer. An admitted
    packet claims the beats of the largest packet; when it is complete, it keeps as many as it has.

    Parameters
    ----------
    nodes: number of peers.
    beats: beats of the pool.
    most: most beats of a packet.

    Ports
    -----
    node, fits: destination of the next packet, and whether it has room; combinational. The room
        remains until a claim. ``fits`` may fall for three cycles: until both counts are updated, a
        completed packet counts as a claim and as its beats.
    claim: a packet is admitted.
    kept: event: a packet with a claim is complete, and keeps ``beats``.
    freed: stream of :func:`rtl.network.link.packets.Given`, returned beats.
    held, none: a node, and whether its complete packets have no beats; combinational.
    idle: no count is being updated.

    Raises ``ValueError`` if the peers' own shares exceed the pool.
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
        # Stage 1: the event changes the count of its peer.
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
        # Stages 2 and 3: the change of the shared part.
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
        # Stage 4: the shared part, minus the limit that leaves room for one more packet: negative
        # if there is room. Claimed beats count for the shared part and for every peer.
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
