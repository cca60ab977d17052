"""Proof of the hold buffer, bounded: a slot leaves with its own vector, lap after lap of the ring.

Two places, vectors of one beat of one bit, and a window of two slots: so places are used again
within the cycles that are searched; a test shows how far they reach. Each reserved place gets its
vector at any time, from the network or from this node, and other vectors come from the network that
name a place that waits for none, of a former lap above all.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.config import preset
from rtl.formats import RecordKind
from rtl.interaction import HoldBuffer
from rtl.interaction.landing import LandingCheck
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove

PLACES, LAPS = 2, 3
DEPTH, SOON_DEPTH = 21, 16
CONFIG = preset("tiny").with_fields(max_dimension=16)
SLOT = data.StructLayout({"kind": 2, "sample": 1, "step": 1, "last": 1})
REMOTE = data.StructLayout({"tag": 2, "data": 1, "last": 1})
LOCAL = data.StructLayout({"data": 1, "tag": data.StructLayout({"landing": 2}), "last": 1})
OUT = data.StructLayout({"data": 1, "kind": 2, "sample": 1, "step": 1, "sample_last": 1,
                         "beat_last": 1})


def held(*edits: tuple[str, str, str], reached: bool = False, soon: bool = False) -> Bench:
    """Return a bench whose slots bear the bit that their vectors have; others' may be any.

    ``reached``: the statement is that no slot of the third lap leaves. ``soon``: state how soon
    slots leave. ``edits``: class, old text, new text.
    """
    bench = Bench()
    m = bench.m

    def edited(block: type, *own: tuple[str, str], **names: object) -> type:
        return variant(block, *own, *(edit[1:] for edit in edits if edit[0] == block.__name__),
                       BEAT_BITS=1, **names)

    layouts = {"TaggedBeat": REMOTE, "VectorBeat": LOCAL}
    landing = edited(LandingCheck, TAG_BITS=2, **layouts)
    m.submodules.dut = dut = variant(
        HoldBuffer, ("self._bits = config.store_bits", "self._bits = 1"),
        ("WINDOW = 4", "WINDOW = 2"), *(edit[1:] for edit in edits if edit[0] == "HoldBuffer"),
        HoldSlot=SLOT, SlotBeat=OUT, LANDING_BITS=2, LandingCheck=landing, **layouts)(
            CONFIG, places=PLACES)
    m.d.comb += dut.vector_beats.eq(1)

    # Slots, of which an EMPTY one gets no vector and bears a 0.
    empty, mark = bench.free(name="empty"), bench.free(name="mark")
    slot = Signal(SLOT)
    m.d.comb += [slot.kind.eq(Mux(empty, RecordKind.EMPTY, RecordKind.KEY_END)),
                 slot.sample.eq(mark & ~empty)]
    entered, entering = bench.source(dut.reserve, slot), dut.reserve.payload
    out = dut.o.payload
    left = bench.sink(dut.o, "o", Cat(out.data, out.sample, out.kind))
    inside = bench.in_order("slots", entered, Cat(entering.sample, entering.kind), left,
                            Cat(out.sample, out.kind), PLACES + dut.OUT_BEATS)
    bench.always("its_vector", ~left | (out.data == out.sample))
    bench.always("one_beat", ~left | out.beat_last)

    # Places that wait for a vector, and the bit of each; who sends it.
    waiting, bits = Signal(PLACES), Signal(PLACES)
    place, sends, ours = bench.free(1, "place"), bench.free(name="sends"), bench.free(name="ours")
    here = dut.next_landing[0]
    waits = waiting.bit_select(place, 1)
    right = sends & waits & ~(ours & ~dut.local.ready)
    wrong = sends & ~waits & ~(entered & (here == place))
    value = bits.bit_select(place, 1)
    m.d.comb += [
        dut.local.valid.eq(right & ours), dut.local.payload.data.eq(value),
        dut.local.payload.tag.landing.eq(place), dut.local.payload.last.eq(1),
        dut.remote.valid.eq((right & ~ours) | wrong), dut.remote.payload.tag.eq(place),
        dut.remote.payload.data.eq(Mux(wrong, bench.free(name="junk"), value)),
        dut.remote.payload.last.eq(1)]
    bench.always("remote_taken", dut.remote.ready)
    with m.If(right):
        m.d.sync += waiting.bit_select(place, 1).eq(0)
    with m.If(entered):
        m.d.sync += [waiting.bit_select(here, 1).eq(entering.kind != RecordKind.EMPTY),
                     bits.bit_select(here, 1).eq(entering.sample)]
    bench.always("free_place", ~entered | ~waiting.bit_select(here, 1))
    bench.always("idle", ~dut.idle | ~dut.o.valid)
    if reached:
        count = Signal(range(PLACES * LAPS + 1))
        m.d.sync += count.eq(count + left)
        bench.broken.clear()
        bench.always("reached", ~left | (count != PLACES * (LAPS - 1)))
    if soon:
        bench.within("leaves", 12, (inside != 0) & (waiting == 0) & dut.o.ready & ~entered, left)
        bench.within("takes", 14, dut.reserve.valid & (inside == 0), entered)
    return bench


def test_depth_reaches():
    verdict = prove(held(reached=True), depth=DEPTH)
    assert verdict.broken == ("reached",), verdict


def test_hold_buffer():
    verdict = prove(held(), depth=DEPTH)
    assert verdict.holds, verdict


def test_it_goes_on():
    verdict = prove(held(soon=True), depth=SOON_DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("what, edit", [
    ("its_vector", ("HoldBuffer", "unread.up & (record.kind == RecordKind.EMPTY)", "0")),
    ("its_vector", ("LandingCheck", "(check.read_data != stage.lap)", "1")),
    ("its_vector", ("LandingCheck", "self.head[bits] ^ (place < self.head[:bits])",
                    "self.head[bits]")),
    ("its_vector", ("LandingCheck", "& ~(self.filled_valid & stage.same)", "")),
    ("its_vector", ("LandingCheck", "& ~(before & stage.similar)", "")),
    ("its_vector", ("LandingCheck", "value.eq(filled_lap)", "value.eq(~filled_lap)")),
    ("free_place", ("HoldBuffer", "free.down.eq(reserve)", "free.down.eq(reserve & ~head[0])")),
], ids=["lap-of-an-empty-one", "filled-twice", "lap", "at-once", "a-cycle-later", "old-lap",
        "place-twice"])
def test_broken_hold_buffer(what, edit):
    verdict = prove(held(edit), depth=DEPTH)
    assert set(verdict.broken) & {what, "free_place"}, verdict
