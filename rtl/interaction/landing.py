"""Landing check: decides which arriving vectors may be written into the hold buffer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.formats import BEAT_INDEX_BITS, TAG_BITS, TaggedBeat, VectorBeat
from rtl.memory import Ram, report_swept
from rtl.stream import SkidBuffer

__all__ = ["LandingCheck"]


class LandingCheck(wiring.Component):
    """Merge the vectors of two sources, and pass vectors whose place waits for a vector.

    A place waits if it is one of the ``level`` places from ``head`` on and its filled bit differs
    from the lap of the place. ``remote`` has priority. Each source has its own beat count, so
    vectors of the two may interleave. If both write to one place, ``local`` wins, because no peer
    owns that place. After reset, the sweep takes ``places`` cycles.

    Parameters
    ----------
    places: number of places, a power of two.
    beats: beats of the longest vector.
    sized: the vector of each place has its own size.

    Ports
    -----
    remote, local: streams of vectors, ``remote`` always ready.
    mark: stream of {place, lap}: write the filled bit of a place that gets no vector.
    head, level: first reserved place with its lap in the top bit, and the number of reserved
        places.
    vector_beats: beats of a vector, at most if ``sized``.
    size_en, size_place, size: write the number of the last beat of the vector of a place (sized
        only).
    write_en, write_addr, write_data, write_lost: beats for the store, address ``place * beats +
        beat``.
    look_en, look, looked: query whether this place (with its lap) is filled; the answer ``looked``
        is valid one cycle later, until the next query. It does not include a write in the same
        cycle.
    filled_valid, filled: the place whose last beat is being written.
    vector_in, bad, beats_in: events: a place filled, a vector dropped, beats of a filled place.
    swept: the filled bits are ready.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat", "its write"): 3}
    RATE = "1 beat per cycle"

    def __init__(self, places: int, beats: int, *, sized: bool = False):
        self._places, self._beats, self._sized = places, beats, sized
        bits = ceil_log2(places)
        super().__init__({
            "remote": In(stream.Signature(TaggedBeat)), "local": In(stream.Signature(VectorBeat)),
            "mark": In(stream.Signature(bits + 1)),
            "head": In(bits + 1), "level": In(range(places + 1)),
            "vector_beats": In(range(beats + 1)),
            "write_en": Out(1), "write_addr": Out(range(places * beats)),
            "write_data": Out(BEAT_BITS), "write_lost": Out(1),
            "look_en": In(1), "look": In(bits + 1), "looked": Out(1),
            "filled_valid": Out(1), "filled": Out(bits),
            "vector_in": Out(1), "bad": Out(1), "beats_in": Out(range(beats + 1)),
            "swept": Out(1), "idle": Out(1),
        } | ({"size_en": In(1), "size_place": In(bits), "size": In(BEAT_INDEX_BITS)} if sized
             else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        places, beats = self._places, self._beats
        bits = ceil_log2(places)
        style = "lutram" if places <= 64 else "bram"
        # One write port, two readers: two copies of the filled bits.
        m.submodules.check_bits = check = Ram(1, places, style=style)
        m.submodules.look_bits = look = Ram(1, places, style=style)
        m.submodules.local_buffer = local = SkidBuffer(VectorBeat)
        wiring.connect(m, wiring.flipped(self.local), local.i)

        # Stage 0: choose a beat and its address. The tag of a vector is the tag of its first beat.
        remote_valid, remote = Signal(), Signal(TaggedBeat, reset_less=True)
        # An inverted copy, which selects the data; without inversion synthesis would merge it.
        no_remote = Signal(reset_less=True)
        m.d.comb += [self.remote.ready.eq(1), local.o.ready.eq(~remote_valid)]
        m.d.sync += [remote_valid.eq(self.remote.valid), no_remote.eq(~self.remote.valid),
                     remote.eq(self.remote.payload)]
        middle = [Signal(name=f"middle{s}") for s in range(2)]
        tags = [Signal(TAG_BITS, name=f"tag{s}", reset_less=True) for s in range(2)]
        beat = [Signal(range(beats + 1), name=f"beat{s}") for s in range(2)]
        chosen = Signal(TaggedBeat)
        valid, tag, index = Signal(), Signal(TAG_BITS), Signal(range(beats + 1))
        with m.If(remote_valid):
            m.d.comb += [chosen.last.eq(remote.last), tag.eq(Mux(middle[0], tags[0], remote.tag)),
                         index.eq(beat[0])]
        with m.Else():
            m.d.comb += [
                chosen.last.eq(local.o.payload.last),
                tag.eq(Mux(middle[1], tags[1], local.o.payload.tag.landing)), index.eq(beat[1]),
            ]
        m.d.comb += [valid.eq(remote_valid | local.o.valid),
                     chosen.data.eq(Mux(no_remote, local.o.payload.data, remote.data)),
                     chosen.lost.eq(remote_valid & remote.lost)]
        for s, takes in enumerate((remote_valid, local.o.valid & ~remote_valid)):
            with m.If(takes):
                m.d.sync += [middle[s].eq(~chosen.last), tags[s].eq(tag)]
                with m.If(chosen.last):
                    m.d.sync += beat[s].eq(0)
                with m.Elif(index != beats):
                    m.d.sync += beat[s].eq(index + 1)
        place, lap = tag[:bits], Signal()
        m.d.comb += [
            lap.eq(self.head[bits] ^ (place < self.head[:bits])), check.read_addr.eq(place),
        ]

        # Stage 1: the bit of the place is known. A place that was filled one or two cycles ago
        # reads as not filled. While one source writes to a place, the other source may write too.
        layout = data.StructLayout({
            "source": 1, "place": bits, "lap": 1, "reserved": 1, "may": 1, "ends": 1, "last": 1,
            "address": range(places * beats), "beat": range(beats + 1), "both": 1, "same": 1,
            "similar": 1, "lost": 1})
        stage, stage_valid, stage_data = Signal(layout, reset_less=True), Signal(), Signal(
            BEAT_BITS, reset_less=True)
        both = Signal()
        m.d.comb += both.eq(Mux(remote_valid, middle[1] & (tags[1] == place),
                                middle[0] & (tags[0] == place)))
        m.d.sync += [
            stage_valid.eq(valid), stage_data.eq(chosen.data),
            stage.source.eq(~remote_valid), stage.place.eq(place), stage.lap.eq(lap),
            stage.reserved.eq(((place - self.head[:bits])[:bits] < self.level)
                              & (tag[bits:] == 0)),
            # While this node's own lookup is being written to a place, no peer owns the place.
            stage.may.eq((index < self.vector_beats) & ~(remote_valid & both)),
            stage.ends.eq(index + 1 == self.vector_beats),
            stage.last.eq(chosen.last), stage.beat.eq(index),
            stage.address.eq(place * beats + index),
            stage.both.eq(both), stage.same.eq(place == stage.place),
            stage.similar.eq(place == self.filled), stage.lost.eq(chosen.lost),
        ]
        ends = stage.ends
        if self._sized:
            m.submodules.sizes = sizes = Ram(BEAT_INDEX_BITS, places, style=style)
            m.d.comb += [
                sizes.read_addr.eq(place), sizes.write_en.eq(self.size_en),
                sizes.write_addr.eq(self.size_place), sizes.write_data.eq(self.size)]
            ends = stage.beat == sizes.read_data
        spoiled, before = [Signal(name=f"spoiled{s}") for s in range(2)], Signal()
        was_spoiled, good, fill = Signal(), Signal(), Signal()
        m.d.comb += [
            was_spoiled.eq(Mux(stage.source, spoiled[1], spoiled[0])),
            good.eq(stage_valid & stage.reserved & stage.may & ~was_spoiled
                    & (check.read_data != stage.lap)
                    & ~(self.filled_valid & stage.same) & ~(before & stage.similar)),
            fill.eq(good & stage.last & ends),
        ]
        for s in range(2):
            with m.If(stage_valid & (stage.source == s)):
                m.d.sync += spoiled[s].eq(~good & ~stage.last)
        with m.If(fill & stage.source & stage.both):
            # The place may begin a new lap before the vector from the network is complete.
            m.d.sync += spoiled[0].eq(1)

        # Stage 2: write the beat, and the bit with the last one.
        filled_lap, write_data = Signal(reset_less=True), Signal(BEAT_BITS, reset_less=True)
        write_lost = Signal(reset_less=True)
        write_en, write_addr = Signal(), Signal.like(self.write_addr, reset_less=True)
        filled_valid, filled = Signal(), Signal(bits, reset_less=True)
        bad, beats_in, decided = Signal(), Signal.like(self.beats_in), Signal()
        m.d.sync += [
            decided.eq(stage_valid),
            write_en.eq(good), write_addr.eq(stage.address), write_data.eq(stage_data),
            write_lost.eq(stage.lost),
            filled_valid.eq(fill), filled.eq(stage.place), filled_lap.eq(stage.lap),
            before.eq(filled_valid), bad.eq(stage_valid & stage.last & ~fill),
            beats_in.eq(Mux(fill, stage.beat + 1, 0)),
        ]
        m.d.comb += [
            self.write_en.eq(write_en), self.write_addr.eq(write_addr),
            self.write_data.eq(write_data), self.write_lost.eq(write_lost),
            self.filled_valid.eq(filled_valid), self.filled.eq(filled),
            self.vector_in.eq(filled_valid), self.bad.eq(bad), self.beats_in.eq(beats_in),
        ]

        # Write port of the filled bits: sweep, then vectors, then places without a vector.
        sweep = Signal(range(places + 1))
        write, address, value = Signal(), Signal(bits), Signal()
        report_swept(m, self.swept)
        m.d.comb += self.swept.eq(sweep[-1])
        with m.If(~self.swept):
            m.d.sync += sweep.eq(sweep + 1)
            m.d.comb += [write.eq(1), address.eq(sweep[:bits]), value.eq(1)]
        with m.Elif(filled_valid):
            m.d.comb += [write.eq(1), address.eq(filled), value.eq(filled_lap)]
        with m.Else():
            m.d.comb += [self.mark.ready.eq(1), write.eq(self.mark.valid),
                         address.eq(self.mark.payload[:bits]), value.eq(self.mark.payload[bits])]
        for copy in (check, look):
            m.d.comb += [copy.write_en.eq(write), copy.write_addr.eq(address),
                         copy.write_data.eq(value)]

        look_lap = Signal(reset_less=True)
        with m.If(self.look_en):
            m.d.sync += look_lap.eq(self.look[bits])
        m.d.comb += [
            look.read_en.eq(self.look_en), look.read_addr.eq(self.look[:bits]),
            self.looked.eq(look.read_data == look_lap),
            self.idle.eq(self.swept & ~remote_valid & local.idle & ~stage_valid & ~decided),
        ]
        return m
